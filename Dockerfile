FROM apache/airflow:3.3.2-python3.11

USER 0
# Debian removes a version when it is mended: a pin would end builds, and Java's major is what counts.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*

# By number, so that Kubernetes' runAsNonRoot can tell; it is the base image's `airflow`.
USER 50000:0
WORKDIR /opt/ferry
COPY --chown=50000:0 requirements.txt ./
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements.txt
COPY --chown=50000:0 pyproject.toml README.md LICENSE ./
COPY --chown=50000:0 include ./include
COPY --chown=50000:0 spark_jobs ./spark_jobs
# Task logs and the page link to them.
COPY --chown=50000:0 docs ./docs
RUN pip install --no-cache-dir --no-deps -e .
COPY --chown=50000:0 dags /opt/airflow/dags

ENV FERRY_CONFIG=/opt/ferry/mm2.properties \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    PYSPARK_PYTHON=python3
WORKDIR /opt/airflow
EXPOSE 8080
