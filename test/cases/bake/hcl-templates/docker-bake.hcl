variable "NAMES" { default = ["one", "two", "three"] }
variable "ON" { default = true }
target "default" {
  description = "shows ${"nested ${1 + 1}"}"
  dockerfile-inline = <<-EOT
    FROM scratch
      COPY . /${NAMES[0]}
    %{ for index, name in NAMES ~}
    LABEL ${index}=${name}
    %{ endfor ~}
    %{ if ON }RUN true%{ else }RUN false%{ endif }

    # $${kept} %%{kept} "quotes" and \n stay
    EOT
  labels = {
    plain   = <<EOT
  indented ${upper("text")}
EOT
    trimmed = "a   ${~ "b" ~}   c"
    joined  = "%{ for name in NAMES }${name},%{ endfor }"
    both    = "%{ if !ON }x%{ else }y%{ endif }%{ if ON }z%{ endif }"
    typed   = "${ON}"
    number  = "${1.50}"
    lines   = "${
      upper("a")
    }"
    windows = join("|", split("\n", <<EOT
a
b
EOT
    ))
  }
}
