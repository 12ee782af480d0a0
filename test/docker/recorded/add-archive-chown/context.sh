mkdir -p s/sub; echo f > s/file; chown 3000:4000 s/file; chmod 4755 s/file; ln -s file s/link; chmod 1777 s/sub; echo k > s/sub/ok
find s -depth -exec touch -h -d @1000000000 {} +
tar -C s --sort=name --format=gnu -cf a.tar .
tar -C s -cf files.tar sub/ok
