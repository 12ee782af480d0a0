# Comments of
// three
/* kinds */
count = 3
target "default" {
  args = {
    sum        = 1 + 2 * 3 - 4 / 2
    thirds     = 1 / 3
    decimals   = 0.1 + 0.2
    remainder  = -7 % 3
    large      = 12345678901234567890123 * 3
    power      = 1e30
    negative   = -count
    grouped    = (1 + 2) * 3
    comparison = jsonencode([1 < 2, 1 <= 1, 2 > 3, 2 >= 3, 1 == 1.0, "1" == 1, null == null, 1 != 2])
    logic      = jsonencode([true && false, true || false, !true, false && can(unknown), true || "true"])
    chained    = count > 5 ? "many" : count > 2 ? "some" : "few"
    mixed      = jsonencode([true ? 1 : "a", false ? [1] : ["a", true], true ? { a = 1 } : { a = "x" }])
    unused     = true ? "kept" : missing
    nothing    = null
    number     = 007.50
    text       = "a\tb\n\"c\" \\ \u00e9 \U0001F600 $${x} %%{y} $ % $$ 100%"
    long       = 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1
    keyed      = jsonencode({ a = 1, "b c" = 2, (upper("d")) = 3, e : 4 })
  }
}
