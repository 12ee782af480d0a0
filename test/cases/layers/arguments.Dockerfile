#$ --build-arg BUILD_TYPE=debug --build-arg HTTP_PROXY=http://proxy.test:3128 --build-arg GIVEN=1
FROM base:1
ARG BUILD_TYPE=release
ENV BUILD_TYPE=env GIVEN=2
ARG GIVEN=3
ARG LATER=$GIVEN
ENV LATER=4
RUN echo $BUILD_TYPE $GIVEN $LATER ${LATER:-5} '$LATER' $UNDECLARED
ARG API_TOKEN=hidden
ENV DB_PASSWORD=hidden-too
RUN login $API_TOKEN $DB_PASSWORD
ENV A= B="with space" C=$A$B
RUN ["env", "$B"]
