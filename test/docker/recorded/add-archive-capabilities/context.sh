mkdir s; echo program > s/p; chmod 755 s/p; setcap cap_net_raw+ep s/p
find s -depth -exec touch -h -d @1000000000 {} +
tar --xattrs --xattrs-include='*' -C s -cf a.tar .
