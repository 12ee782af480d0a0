mkdir -p s/sub; echo f > s/file; ln -s file s/link; chmod 1777 s/sub; chown 12:13 s/sub; echo k > s/sub/ok
find s -depth -exec touch -h -d @1000000000 {} +
tar -C s --sort=name --format=gnu -cf a.tar .
