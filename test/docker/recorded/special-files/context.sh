mkdir d; mkfifo d/pipe; mknod d/null c 1 3; mkfifo -m 600 pipe; mknod null c 1 3
perl -e 'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un("socket")) || die'
truncate -s 3M sparse; printf e >> sparse
find . -depth -exec touch -h -d @1000000000 {} +
