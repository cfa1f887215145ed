FROM apache/airflow:3.3.2-python3.11

USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*

USER airflow
WORKDIR /opt/ferry
COPY --chown=airflow:0 requirements.txt ./
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements.txt
COPY --chown=airflow:0 pyproject.toml README.md LICENSE ./
COPY --chown=airflow:0 include ./include
COPY --chown=airflow:0 spark_jobs ./spark_jobs
RUN pip install --no-cache-dir --no-deps -e .
COPY --chown=airflow:0 dags /opt/airflow/dags
COPY --chown=airflow:0 plugins /opt/airflow/plugins

ENV FERRY_CONFIG=/opt/ferry/mm2.properties \
    PYSPARK_PYTHON=python3
WORKDIR /opt/airflow
