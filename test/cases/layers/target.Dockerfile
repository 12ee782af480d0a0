#$ --target middle
FROM scratch AS first
COPY a.txt /
FROM base:1 AS middle
COPY --from=first / /all
RUN true
FROM base:1
RUN never
