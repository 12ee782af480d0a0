FROM base:1
RUN --mount=type=bind,from=base:1,target=/m not run
FROM lib
