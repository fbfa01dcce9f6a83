# Two images, of which the last stage is the default:
# - the full one trains and predicts: `docker build -t tfbbb .`
# - the small one only predicts, without TensorFlow:
#   `docker build --target predict -t tfbbb-predict .`
# Without `--build-arg SOURCE_COMMIT=$(git rev-parse HEAD)` their commit is unknown.

# Any Debian-based image with Python 3.11, 3.12 or 3.13.
ARG BASE_IMAGE=python:3.12-slim

# The tools of the stages that install packages.
FROM ${BASE_IMAGE} AS installer
USER root
# Debian's own Python comes without venv and pip.
RUN { python3 -c 'import ensurepip, venv' && command -v strip; } >/dev/null 2>&1 \
    || { apt-get update \
        && apt-get install --yes --no-install-recommends binutils python3-venv; }
# pip has a separate environment, which the images do not contain.
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/tfbbb
ENV PATH=/opt/pip/bin:$PATH PIP_PYTHON=/opt/tfbbb/bin/python \
    PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY deploy/shrink.sh ./

FROM installer AS dependencies
COPY requirements-image.lock ./
RUN pip install --no-deps --no-compile --require-hashes \
        --requirement requirements-image.lock \
    && sh shrink.sh /opt/tfbbb

FROM installer AS predict-dependencies
COPY requirements-predict.lock ./
RUN pip install --no-deps --no-compile --require-hashes \
        --requirement requirements-predict.lock \
    && sh shrink.sh /opt/tfbbb

# Separate stages, so that a new version of the source is a small layer. The imports fail
# if a library is broken or a file is missing.
FROM dependencies AS package
ARG SOURCE_COMMIT=""
COPY . ./
RUN pip install --no-compile --no-deps --prefix /opt/package . \
    && export PYTHONPATH=$(echo /opt/package/lib/python3.*/site-packages) \
    && pip check \
    && /opt/tfbbb/bin/python -m compileall -q -f -s /opt/package -p /opt/tfbbb \
        --invalidation-mode unchecked-hash /opt/package/lib \
    && cd / && /opt/tfbbb/bin/python -c 'import tfbbb.judging.explain, tfbbb.export, tfbbb.inference, \
        tfbbb.scores.plots, tfbbb.sklearn, tfbbb.training, service.app, \
        service.job_process.table_trainer, service.api.worker'

FROM predict-dependencies AS predict-package
ARG SOURCE_COMMIT=""
COPY . ./
RUN pip install --no-compile --no-deps --prefix /opt/package ./deploy/predict \
    && export PYTHONPATH=$(echo /opt/package/lib/python3.*/site-packages) \
    && pip check \
    && /opt/tfbbb/bin/python -m compileall -q -f -s /opt/package -p /opt/tfbbb \
        --invalidation-mode unchecked-hash /opt/package/lib \
    && cd / && /opt/tfbbb/bin/python -c 'import tfbbb.cli, tfbbb.client, \
        tfbbb.export.reader, tfbbb.judging.evaluation, tfbbb.judging.explain, \
        service.app, service.sandbox.predict, service.api.worker, s3fs'

# What both images have.
FROM ${BASE_IMAGE} AS runtime
USER root
RUN useradd --uid 10001 --create-home tfbbb \
    && install --directory --owner tfbbb --group tfbbb \
        /app /app/saved_models /app/.tfbbb
ENV PATH=/opt/tfbbb/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /app
# Volumes: the models; datasets, jobs and the database.
VOLUME ["/app/saved_models", "/app/.tfbbb"]
# A number, for platforms that check that the user is not root.
USER 10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", "\
from http.client import HTTPConnection; \
connection = HTTPConnection('127.0.0.1', 8000, timeout=4); \
connection.request('GET', '/health/live'); \
raise SystemExit(connection.getresponse().status != 200)"]
# The service does not start without a key: set TFBBB_ADMIN_KEY.
# Removes an entry point of the base image.
ENTRYPOINT []
CMD ["tfbbb", "serve", "--host", "0.0.0.0"]

# Answers requests; jobs wait for a worker elsewhere.
FROM runtime AS predict
LABEL org.opencontainers.image.title="tfbbb-predict" \
    org.opencontainers.image.description="Answers with models that tfbbb trained; trains none."
COPY --from=predict-dependencies /opt/tfbbb /opt/tfbbb
COPY --from=predict-package /opt/package /opt/tfbbb
ENV TFBBB_JOB_SLOTS=0
ARG SOURCE_COMMIT=""
LABEL org.opencontainers.image.version="0.3.0" \
    org.opencontainers.image.revision="${SOURCE_COMMIT}"

# Trains models, and answers with those too that NumPy cannot compute.
FROM runtime AS full
LABEL org.opencontainers.image.title="tfbbb" \
    org.opencontainers.image.description="Trains Bayesian neural networks, and answers with them."
COPY --from=dependencies /opt/tfbbb /opt/tfbbb
COPY --from=package /opt/package /opt/tfbbb
ARG SOURCE_COMMIT=""
LABEL org.opencontainers.image.version="0.3.0" \
    org.opencontainers.image.revision="${SOURCE_COMMIT}"
