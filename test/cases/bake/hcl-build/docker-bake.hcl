variable "VERSION" {
  type = string
  default = "1.2.3"
  validation {
    condition = length(regexall("^\\d+\\.\\d+\\.\\d+$", VERSION)) == 1
    error_message = "VERSION is MAJOR.MINOR.PATCH"
  }
}
variable "BASE" {
  default = "busybox:1"
}
function "tag" {
  params = [name]
  variadic_params = parts
  result = "${name}:${join("-", concat([VERSION], parts))}"
}
group "default" { targets = ["app", "all"] }
target "_common" {
  args = { VERSION = VERSION, MAJOR = split(".", VERSION)[0] }
  labels = { "org.example.version" = upper("v${VERSION}") }
}
target "base" {
  inherits = ["_common"]
  args = { BASE = BASE }
  dockerfile-inline = <<-EOT
    ARG BASE
    FROM $BASE
    ARG VERSION
    RUN echo "base $VERSION" > /base
  EOT
}
target "app" {
  name = "app-${item.name}"
  matrix = {
    item = [
      { name = "web", port = 80 + 8000 },
      { name = "api", port = max(81, 9001) },
    ]
  }
  inherits = ["_common"]
  contexts = { base = "target:base" }
  dockerfile = "app/Dockerfile"
  args = { NAME = title(item.name), PORT = item.port }
  tags = [tag("bake-${item.name}"), tag("bake-${item.name}", "port", item.port)]
}
target "all" {
  contexts = { for name in ["web", "api"] : name => "target:app-${name}" }
  dockerfile-inline = <<EOT
FROM base
COPY --from=web /name /web
COPY --from=api /name /api
RUN cat /web /api /base > /all
EOT
}
target "all" {
  inherits = ["_common"]
  contexts = { base = "target:base" }
}
