target "base" {
  name       = "base-${x}"
  matrix     = { x = ["a"] }
  dockerfile = "${x}.Dockerfile"
}
target "app" {
  tags       = ["app:1", "app:2"]
  dockerfile = target.base-a.dockerfile
  args = {
    first = target.app.tags[0]
    name  = target.app.name
    cache = jsonencode(target.other.cache-from)
    group = join(",", group.all.targets)
    none  = try(target.other.tags[0], "no tags")
    whole = jsonencode(target.other)
  }
}
target "other" {
  cache-from = ["registry/cache", "type=gha,scope=x"]
  secret     = ["id=token,env=TOKEN"]
  attest     = ["type=provenance,mode=max"]
  output     = [{ type = "local", dest = "out" }]
  args       = { A = 1, B = null }
  pull       = true
}
group "all" { targets = ["app", "other"] }
