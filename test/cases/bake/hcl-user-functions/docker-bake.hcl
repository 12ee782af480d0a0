variable "PREFIX" { default = "p" }
function "greet" {
  params          = [name]
  variadic_params = others
  result          = "${PREFIX}-${name}${length(others) > 0 ? "+${join("+", others)}" : ""}"
}
function "tags" {
  params = [names]
  result = [for name in names : greet(name)]
}
function "constant" {
  params = []
  result = { a = 1 }
}
# One of the library stays what it is.
function "upper" {
  params = [x]
  result = "mine"
}
target "default" {
  tags = tags(["a", "b"])
  args = {
    one    = greet("x")
    many   = greet("x", "y", "z")
    spread = greet(["a", "b", "c"]...)
    object = constant().a
    upper  = upper("x")
    late   = later
  }
}
later = greet(greet("nested"))
