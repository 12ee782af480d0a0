echo 1 > file
chmod 644 file
