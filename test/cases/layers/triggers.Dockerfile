FROM base:1 AS parent
ONBUILD COPY a.txt /triggered/
ONBUILD RUN trigger
ONBUILD ENV B=1
FROM parent
RUN echo $B
