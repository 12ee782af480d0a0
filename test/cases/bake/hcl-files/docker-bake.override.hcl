variable "TAG" { default = "second" }
target "app" {
  args = { B = "2", C = other }
  labels = { two = "2" }
  cache-from = ["y"]
  inherits = ["extra"]
}
target "extra" {
  platforms = ["linux/arm64"]
  network = "none"
}
