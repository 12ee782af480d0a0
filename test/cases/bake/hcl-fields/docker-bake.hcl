target "default" {
  annotations       = ["index:a=b", "index:a=b", ""]
  attest            = [{ type = "sbom" }, "type=provenance,mode=min", { type = "sbom", generator = "image" }, { type = "x", disabled = true }]
  context           = "./dir/../."
  contexts          = { lib = "target:lib", image = "docker-image://alpine:3", empty = "" }
  dockerfile        = ""
  args              = { A = true, B = 1.10, "$${C}" = "$${D}" }
  labels            = { "a.b" = "%%{c}" }
  tags              = ["a", "b", "a"]
  cache-from        = ["type=registry,ref=x", "y,z", { type = "local", src = "cache" }]
  cache-to          = ["type=inline", "type=gha,mode=max"]
  target            = "final"
  secret            = [{ id = "a", src = "docker-bake.hcl" }, { id = "a", env = "C" }, "type=env,id=d,src=E", { id = "f", src = "docker-bake.hcl", extra = "ignored" }]
  platforms         = ["linux/amd64", "linux/arm64", "linux/amd64"]
  output            = ["out", "type=image,push=true", { type = "oci", dest = "x.tar", tar = false }, "-"]
  pull              = "true"
  no-cache          = false
  network           = "host"
  no-cache-filter   = ["x"]
  shm-size          = 128
  ulimits           = ["nofile=1:2"]
  call              = "check"
  entitlements      = ["security.insecure"]
  extra-hosts       = { h = "1.2.3.4" }
  description       = "all of them"
}
target "lib" {
  platforms = null
  tags      = []
  args      = {}
  no-cache-filter = ["a"]
}
