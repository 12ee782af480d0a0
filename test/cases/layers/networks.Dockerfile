#$ --add-host one:192.0.2.1 --add-host two=2001:db8::1 --allow network.host
FROM base:1
RUN true
RUN --network=none true
RUN --network=host true
RUN --network=default true
