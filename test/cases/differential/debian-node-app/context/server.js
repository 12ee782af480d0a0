require("http");
