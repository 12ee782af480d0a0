target "default" {
  args = {
    operators = jsonencode([add(1, 2), subtract(1, 2), multiply(2, 3), divide(7, 2), modulo(7, 3), negate(3), absolute(-2.5)])
    compared  = jsonencode([greaterthan(2, 1), greaterthanorequalto(1, 1), lessthan(2, 1), lessthanorequalto(1, 1), equal("a", "a"), notequal(1, 2), equal([1], [1])])
    logic     = jsonencode([and(true, false), or(true, false), not(true)])
    rounded   = jsonencode([int(2.7), int(-2.7), ceil(1.2), ceil(-1.2), floor(1.8), floor(-1.2), ceil(3), signum(-4), signum(0)])
    extremes  = jsonencode([max(1, 3, 2), min(1, 3, 2), max([4, 5]...)])
    powers    = jsonencode([pow(2, 10), pow(2, 0.5), pow(2, 70), log(8, 2), log(100, 10)])
    parsed    = jsonencode([parseint("ff", 16), parseint("-101", 2), parseint("Zz", 62), parseint("777", 8)])
    converted = "${"3" + "4"}"
    divided   = 10 / 4
    exact     = 9007199254740993
    small     = 0.000000001234
  }
}
