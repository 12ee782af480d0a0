target "default" {
  target = "final"
}

target "lib" {}

group "all" {
  targets = ["default", "lib"]
}
