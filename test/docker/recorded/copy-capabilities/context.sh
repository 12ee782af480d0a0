mkdir d s; echo program > d/p; chmod 755 d/p; cp d/p s/p; setcap cap_net_raw+ep d/p; setcap cap_net_raw+ep s/p
find . -depth -exec touch -h -d @1000000000 {} +
tar --xattrs --xattrs-include='*' -C s -cf a.tar .
