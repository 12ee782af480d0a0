variable "TEXT" { default = "default" }
variable "NUMBER" { default = 2 }
variable "FLAG" { default = false }
variable "EMPTY" {}
variable "NOTHING" { default = null }
variable "TYPED" { type = string }
variable "LIST" {
  type        = list(string)
  default     = ["x"]
  description = "values, separated by commas"
}
variable "SET" { type = set(number) }
variable "MAP" { type = map(bool) }
variable "TUPLE" { type = tuple([string, number]) }
variable "OBJECT" {
  type    = object({ name = string, size = optional(number) })
  default = { name = "n" }
}
variable "ANY" {
  type    = any
  default = [1, "a"]
}
variable "DERIVED" { default = "${TEXT}-${NUMBER + 1}" }
variable "CHECKED" {
  default = 5
  validation {
    condition     = CHECKED > 3
    error_message = "more than 3"
  }
  validation {
    condition     = CHECKED < 10
    error_message = "less than 10, not ${CHECKED}"
  }
}
constant = "${DERIVED}!"
target "default" {
  args = {
    all     = jsonencode([TEXT, NUMBER, FLAG, EMPTY, NOTHING, TYPED, LIST, SET, MAP, TUPLE, OBJECT, ANY, CHECKED])
    number  = NUMBER * 3
    derived = DERIVED
    constant = constant
    context = BAKE_CMD_CONTEXT
  }
}
