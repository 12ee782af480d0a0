import { expect, test } from "bun:test";
import { explainFault } from "../../src/service/http/connection.ts";

test.each([
  ["an expired certificate", "CERT_HAS_EXPIRED", "It has expired", true],
  ["one that is not valid yet", "CERT_NOT_YET_VALID", "check this machine's clock", true],
  ["one of another host", "ERR_TLS_CERT_ALTNAME_INVALID", "check the address", true],
  ["one that nobody known has signed", "DEPTH_ZERO_SELF_SIGNED_CERT", "NODE_EXTRA_CA_CERTS=FILE", true],
  ["a port without TLS", "EPROTO", "begins with http://", false],
])("%s: the hint says what to do about it", (_, code, hint, permanent) => {
  const fault = explainFault(Object.assign(new Error("the call has failed"), { code }));
  expect(fault).toMatchObject({ hint: expect.stringContaining(hint), permanent });
});
