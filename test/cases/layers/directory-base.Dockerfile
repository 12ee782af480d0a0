#$ --build-context start=dir
FROM start
COPY a.txt /
