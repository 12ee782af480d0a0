import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Certificate {
  cert: string;
  key: string;
  /** The certificate's file. */
  path: string;
}

/** Makes the certificate of servers at `localhost` and 127.0.0.1, which is its own authority. */
export function makeCertificate(directory: string): Certificate {
  const [path, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"];
  const made = Bun.spawnSync([...words, "-keyout", key, "-out", path, ...names]);
  if (made.exitCode !== 0) throw new Error(made.stderr.toString());
  return { cert: readFileSync(path, "utf8"), key: readFileSync(key, "utf8"), path };
}
