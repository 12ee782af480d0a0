#$ --network none
FROM base:1
COPY a.txt /
RUN true
RUN --network=default true
