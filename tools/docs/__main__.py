"""`python -m tools.docs`, in the folder of the project, writes every page that comes from tables of the code."""

from tools.docs import answers_page, licences_page, metrics_page, mirrormaker_page, properties_page, services_page

for written in (answers_page, licences_page, metrics_page, mirrormaker_page, properties_page, services_page):
    written.PAGE.write_text(written.page(), encoding="utf-8")
