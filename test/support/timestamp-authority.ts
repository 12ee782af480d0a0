/** A timestamp authority on loopback: https://www.rfc-editor.org/rfc/rfc3161 */
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./bough.ts";
import { extensions, makeX509 } from "./x509.ts";

export interface TimestampAuthority extends AsyncDisposable {
  url: string;
  /** Its certificates in DER and base64, its own first. */
  chain: readonly string[];
}

const day = 86_400_000;

export function startTimestampAuthority(): TimestampAuthority {
  const directory = temporaryDirectory();
  const file = (name: string) => join(directory, name);
  const [root, own] = [1, 2].map(() => generateKeyPairSync("ec", { namedCurve: "P-256" }));
  if (root === undefined || own === undefined) throw new Error("unreachable: two keys are made");
  const issuer = { subject: "root of timestamps", privateKey: root.privateKey };
  const times = { from: new Date(Date.now() - day), until: new Date(Date.now() + day), issuer };
  const authority = makeX509({
    ...{ ...times, subject: issuer.subject, publicKey: root.publicKey, serial: 1 },
    extensions: [extensions.authority(), extensions.signsCertificates()],
  });
  const certificate = makeX509({
    ...{ ...times, subject: "timestamps", publicKey: own.publicKey, serial: 2 },
    extensions: [extensions.signsContents(), extensions.timeStamping()],
  });
  writeFileSync(file("key.pem"), own.privateKey.export({ type: "pkcs8", format: "pem" }));
  writeFileSync(file("cert.pem"), certificate.toString());
  writeFileSync(
    file("ts.cnf"),
    [
      "[tsa]\ndefault_tsa = own\n[own]",
      `serial = ${file("serial")}`,
      "crypto_device = builtin\ndefault_policy = 1.2.3.4.1\ndigests = sha256",
      "signer_digest = sha256\ness_cert_id_alg = sha256\n",
    ].join("\n"),
  );
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      writeFileSync(file("query"), Buffer.from(await request.arrayBuffer()));
      const words = ["-queryfile", "query", "-inkey", "key.pem", "-signer", "cert.pem", "-config", "ts.cnf"];
      const made = Bun.spawnSync(["openssl", "ts", "-reply", ...words], { cwd: directory });
      if (!made.success) return new Response(made.stderr.toString(), { status: 500 });
      return new Response(made.stdout, { headers: { "content-type": "application/timestamp-reply" } });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/api/v1/timestamp`,
    chain: [certificate, authority].map(({ raw }) => raw.toString("base64")),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
