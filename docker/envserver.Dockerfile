# An env-server: environments and the way to the learner; no torch, no compiler. From the repository's root:
#
#   docker build -f docker/envserver.Dockerfile -t localhost/kubebeast/envserver:0.1.0 .
#
# ENVSERVER_EXTRAS: extras of the distribution; empty leaves out ale-py, which is GPL-2.0. "legacy,legacy-atari" is for
# environments of older gym and atari-py; KubeBeast's own code is the same.
# PIP_PACKAGES: further packages with environments, e.g. "minigrid".
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# The same seed and no time stamps in compiled files: the same sources give the same layers.
ENV PYTHONHASHSEED=0 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/kubebeast && /opt/kubebeast/bin/pip uninstall -q -y setuptools
WORKDIR /src

ARG ENVSERVER_EXTRAS=atari
ARG PIP_PACKAGES=""
COPY constraints.txt docker/requirements.py docker/slim ./
COPY protos/pyproject.toml protos/
COPY services/common/pyproject.toml services/common/
COPY services/envserver/pyproject.toml services/envserver/
# Older gym needs NumPy 1, whose last version is 1.26.4, instead of the pinned one, and atari-py is compiled.
RUN case ",${ENVSERVER_EXTRAS}," in *,legacy*) \
      sed -i '/^numpy==/d' constraints.txt \
      && apt-get update -qq \
      && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends cmake g++ make zlib1g-dev >/dev/null \
      ;; esac
RUN python3 requirements.py "services/envserver[${ENVSERVER_EXTRAS}]" >requirements.txt \
 && /opt/kubebeast/bin/pip install -q --no-compile -c constraints.txt -r requirements.txt ${PIP_PACKAGES} \
 && ./slim /opt/kubebeast \
 && /opt/kubebeast/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/kubebeast

COPY protos protos
COPY services/common services/common
COPY services/envserver services/envserver
RUN PIP_CONSTRAINT=/src/constraints.txt /opt/kubebeast/bin/pip install -q --no-compile --no-deps --prefix /opt/code \
    ./protos ./services/common ./services/envserver \
 && /opt/kubebeast/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/code

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/kubebeast /opt/kubebeast
COPY --from=build /opt/code /opt/kubebeast
ENV PATH=/opt/kubebeast/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp
USER 10001:10001
# 9091: /healthz, /readyz and /metrics, with --http-address 0.0.0.0:9091.
EXPOSE 9091
ENTRYPOINT ["kubebeast-envserver"]

ARG VERSION=0.1.0
ARG REVISION=""
LABEL org.opencontainers.image.title="kubebeast-envserver" \
      org.opencontainers.image.description="Hosts environments and streams their observations to a KubeBeast learner" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
