FROM base:1
RUN --mount=type=cache,from=lib,target=/m make
