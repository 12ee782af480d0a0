FROM base:1
WORKDIR /left
WORKDIR /entered
COPY a.txt .
