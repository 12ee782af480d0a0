function "short" {
  params = [version]
  result = join("", slice(split(".", version), 0, 2))
}
variable "VERSIONS" { default = ["1.21.0", "1.22.3"] }
group "default" { targets = ["app", "lib"] }
target "app" {
  name = "app-${short(version)}-${item.os}"
  matrix = {
    version = VERSIONS
    item = [
      { os = "alpine", platforms = ["linux/amd64"] },
      { os = "debian", platforms = ["linux/amd64", "linux/arm64"] },
    ]
  }
  inherits   = ["_base"]
  platforms  = item.platforms
  args       = { VERSION = version }
  tags       = ["app:${version}-${item.os}"]
  dockerfile = item.os == "alpine" ? "Dockerfile.alpine" : null
}
target "lib" {
  name   = "lib-${sanitize(x)}"
  matrix = { x = ["a.b"] }
}
target "_base" {
  labels = { base = "yes" }
  args   = { VERSION = "none", KEPT = "1" }
}
