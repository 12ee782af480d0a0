group "default" {
  targets = ["a", "b"]
}
target "a" {
  annotations = ["a=b", "manifest[linux/amd64],index:c=d"]
  output      = ["type=tar", "type=image"]
  shm-size    = "1.5 GiB"
  ulimits     = ["nofile=3:5", "core=-1"]
}
target "b" {
  output = [{ type = "oci", name = "app" }]
}
