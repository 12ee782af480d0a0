target "default" {
  args = {
    base64  = jsonencode([base64encode("héllo"), base64decode("aMOpbGxv")])
    url     = urlencode("a b&c=d/é~!*'()")
    json    = jsonencode({ b = [1, 2.5, true, null, "<x>"], a = "é" })
    decoded = jsonencode(jsondecode("{\"b\": [1, 2.50, {\"c\": null}], \"a\": \"\\u00e9\", \"big\": 12345678901234567890}"))
    csv     = jsonencode(csvdecode("a,b\n1,\"x,\"\"y\"\"\"\n\n3,4\n"))
    md5     = md5("a")
    sha1    = sha1("a")
    sha256  = sha256("a")
    sha512  = sha512("a")
    uuid    = jsonencode([uuidv5("dns", "example.com"), uuidv5("url", "x"), uuidv5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "example.com")])
    hosts   = jsonencode([cidrhost("10.12.112.0/20", 16), cidrhost("10.0.0.0/8", -1), cidrhost("fd00:fd12:3456:7890:00a2::/72", 34)])
    masks   = jsonencode([cidrnetmask("172.16.0.0/12"), cidrsubnet("172.16.0.0/12", 4, 2), cidrsubnet("10.1.2.0/24", 4, 15), cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)])
    subnets = jsonencode([cidrsubnets("10.1.0.0/16", 4, 4, 8, 4), cidrsubnets("fd00::/48", 16, 16)])
    dates   = jsonencode([for f in ["YYYY-MM-DD'T'hh:mm:ssZ", "DD MMM YY", "EEEE, D MMMM YYYY", "EEE h:mm", "HH:mm AA", "H aa", "ZZZZ ZZZZZ ZZZ", "'it''s' s"] : formatdate(f, "2018-01-02T23:12:01+05:30")])
    added   = jsonencode([timeadd("2017-11-22T00:00:00Z", "10m"), timeadd("2017-11-22T00:00:00+01:00", "-1h30m5s"), timeadd("2020-02-28T23:59:59.5Z", "1.5s"), timeadd("2020-01-01T00:00:00Z", "0")])
    random  = jsonencode([length(regexall("^[0-9a-f]{8}-[0-9a-f]{4}-4", uuidv4())), length(regexall("^\\$2a\\$04\\$", bcrypt("x", 4))), length(regexall("^\\d{4}-\\d\\d-\\d\\dT.*Z$", timestamp()))])
    home    = homedir()
  }
}
