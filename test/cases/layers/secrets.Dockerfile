#$ --secret id=token,src=a.txt --secret id=variable,env=TOKEN
FROM base:1
RUN --mount=type=secret,id=token cat /run/secrets/token
RUN --mount=type=secret,id=token,target=/token,mode=0444,uid=1000 cat /token
RUN --mount=type=secret,id=variable,env=TOKEN env
RUN --mount=type=secret,id=missing true
