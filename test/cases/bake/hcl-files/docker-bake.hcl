variable "TAG" { default = "first" }
function "tag" {
  params = [name]
  result = "${name}:${TAG}"
}
group "default" { targets = ["app"] }
target "app" {
  tags = [tag("app")]
  args = { A = "1", B = "1" }
  labels = { one = "1" }
  cache-from = ["x"]
  platforms = ["linux/amd64"]
}
