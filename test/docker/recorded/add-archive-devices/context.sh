mkdir -p s/dev; mknod s/dev/null c 1 3; mknod s/dev/loop0 b 7 0; mkfifo -m 600 s/dev/initctl; echo f > s/f
find s -depth -exec touch -h -d @1000000000 {} +
tar -C s --sort=name -czf rootfs.tar.gz .
