import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Credentials {
  username: string;
  password: string;
}

/** A registry on loopback (Debian's `docker-registry`), with a password if credentials are given. */
export class Registry {
  /** `127.0.0.1:<port>` */
  readonly host: string;
  readonly #process: Bun.Subprocess;
  readonly #directory: string;
  readonly #credentials: Credentials | undefined;

  private constructor(
    host: string,
    process: Bun.Subprocess,
    directory: string,
    credentials: Credentials | undefined,
  ) {
    this.host = host;
    this.#process = process;
    this.#directory = directory;
    this.#credentials = credentials;
  }

  /**
   * Starts a registry. `storageBytes` is the size of its storage, a tmpfs, which needs root. `hasTls`: with a certificate that
   * nobody knows. `wantsCertificates`: it accepts only clients with that certificate.
   */
  static async start(
    credentials?: Credentials,
    storageBytes?: number,
    { hasTls = false, wantsCertificates = false }: { hasTls?: boolean; wantsCertificates?: boolean } = {},
  ): Promise<Registry> {
    const directory = mkdtempSync(join(tmpdir(), "bough-registry-"));
    const auth: Record<string, unknown> = {};
    if (credentials !== undefined) {
      const hash = await Bun.password.hash(credentials.password, { algorithm: "bcrypt", cost: 4 });
      writeFileSync(join(directory, "htpasswd"), `${credentials.username}:${hash}\n`);
      auth.auth = { htpasswd: { realm: "test", path: join(directory, "htpasswd") } };
    }
    const data = join(directory, "data");
    mkdirSync(data);
    if (storageBytes !== undefined)
      Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${storageBytes}`, "tmpfs", data]);
    const made = hasTls ? makeCertificate(directory) : undefined;
    const tls = made && { tls: wantsCertificates ? { ...made, clientcas: [made.certificate] } : made };
    for (let attempt = 1; ; attempt++) {
      const host = `127.0.0.1:${freePort()}`;
      // The configuration is YAML, which includes JSON.
      const config = {
        version: 0.1,
        log: { level: "error", accesslog: { disabled: false } },
        storage: { filesystem: { rootdirectory: data } },
        http: { addr: host, ...tls },
        ...auth,
      };
      writeFileSync(join(directory, "config.yml"), JSON.stringify(config));
      const process = Bun.spawn(["docker-registry", "serve", join(directory, "config.yml")], {
        stdin: "ignore",
        stdout: Bun.file(join(directory, "access.log")),
        stderr: "ignore",
      });
      if (await hasStarted(process, `http${hasTls ? "s" : ""}://${host}`, made))
        return new Registry(host, process, directory, credentials);
      // Another program may have taken the port.
      if (attempt === maxAttempts) throw new Error(`docker-registry ended with ${process.exitCode}`);
    }
  }

  /** Copies an image, all of its platforms, to `<host>/<name>`; returns its digest. */
  push(source: string, name: string): string {
    const digestFile = join(this.#directory, "digest");
    const login = this.#credentials && [
      `--dest-creds=${this.#credentials.username}:${this.#credentials.password}`,
    ];
    const options = [
      "--insecure-policy",
      "--all",
      "--dest-tls-verify=false",
      `--digestfile=${digestFile}`,
      ...(login ?? []),
    ];
    const copy = Bun.spawnSync(["skopeo", "copy", ...options, source, `docker://${this.host}/${name}`]);
    if (!copy.success) throw new Error(`skopeo copy ${source}: ${copy.stderr.toString()}`);
    return Bun.spawnSync(["cat", digestFile]).stdout.toString().trim();
  }

  /** Methods and paths of the requests so far, with queries. */
  requests(): string[] {
    return [...this.#log().matchAll(/ "(\S+ \S+) HTTP/g)].map(([, request = ""]) => request);
  }

  /** The bytes of all responses' bodies so far. */
  sentBytes(): number {
    const sizes = this.#log().matchAll(/ HTTP\/1\.1" \d{3} (\d+)/g);
    return [...sizes].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
  }

  /** Returns its certificate and the key of it. */
  certificate(): [certificate: string, key: string] {
    const read = (name: string) => readFileSync(join(this.#directory, name), "utf8");
    return [read("cert.pem"), read("key.pem")];
  }

  #log(): string {
    return readFileSync(join(this.#directory, "access.log"), "utf8");
  }

  async stop(): Promise<void> {
    this.#process.kill();
    await this.#process.exited;
    Bun.spawnSync(["umount", "--quiet", join(this.#directory, "data")]);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

const maxAttempts = 5;

/** Waits until the registry answers, and not another program at its address. Returns false if it ends before. */
async function hasStarted(
  process: Bun.Subprocess,
  address: string,
  own: ReturnType<typeof makeCertificate> | undefined,
): Promise<boolean> {
  const client = own && { cert: Bun.file(own.certificate), key: Bun.file(own.key) };
  while (process.exitCode === null) {
    const tls = { rejectUnauthorized: false, ...client };
    const response = await fetch(`${address}/v2/`, { tls }).catch(() => undefined);
    if (response?.headers.has("docker-distribution-api-version")) return true;
    await Bun.sleep(10);
  }
  return false;
}

/** Makes a certificate of its own for the loopback address. */
function makeCertificate(directory: string): { certificate: string; key: string } {
  const [certificate, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const subject = ["-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.1"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const made = Bun.spawnSync([
    "openssl",
    "req",
    "-x509",
    ...curve,
    "-keyout",
    key,
    "-out",
    certificate,
    ...subject,
  ]);
  if (!made.success) throw new Error(made.stderr.toString());
  return { certificate, key };
}

function freePort(): number {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = server;
  server.stop(true);
  return port ?? 0;
}
