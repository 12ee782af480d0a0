variable "VERSIONS" {
  default = {
    "1.21" = { base = "alpine", lts = false }
    "1.22" = { base = "debian", lts = true }
    "1.23" = { base = "alpine", lts = true }
  }
}
images = [for version, it in VERSIONS : "app:${version}-${it.base}" if it.lts]
target "default" {
  tags = images
  args = {
    list     = jsonencode([for index, name in ["a", "b"] : "${index}${name}"])
    object   = jsonencode({ for name in ["b", "a"] : upper(name) => strlen(name) })
    grouped  = jsonencode({ for version, it in VERSIONS : it.base => version... })
    nested   = jsonencode([for x in [1, 2] : [for y in [x, x + 1] : x * y]])
    splat    = jsonencode(values(VERSIONS)[*].base)
    dots     = jsonencode(values(VERSIONS).*.lts)
    single   = jsonencode("alone"[*])
    none     = jsonencode(null[*])
    index    = VERSIONS["1.22"].base
    computed = VERSIONS[join(".", ["1", "23"])]["base"]
    element  = ["a", "b", "c"][1]
    legacy   = ["a", "b"].1
    set      = jsonencode([for x in convert(["b", "a", "b"], set(string)) : x])
    empty    = jsonencode([for x in [] : x])
    shadowed = jsonencode([for images in [1] : images])
  }
}
