/**
 * Images that are the same bytes everywhere, put into a registry without a builder: what other programs say of them can be kept.
 * Their layers are empty.
 */
interface Described {
  mediaType: string;
  digest: string;
  size: number;
}

const oci = "application/vnd.oci.image";
const docker = "application/vnd.docker";
export const types = {
  oci: {
    manifest: `${oci}.manifest.v1+json`,
    config: `${oci}.config.v1+json`,
    layer: `${oci}.layer.v1.tar+gzip`,
  },
  docker: {
    manifest: `${docker}.distribution.manifest.v2+json`,
    config: `${docker}.container.image.v1+json`,
    layer: `${docker}.image.rootfs.diff.tar.gzip`,
  },
  index: `${oci}.index.v1+json`,
  list: `${docker}.distribution.manifest.list.v2+json`,
};

/** Puts all of them into the registry at `host`. */
export async function putImages(host: string): Promise<void> {
  const app = openRepository(host, "app");
  const [amd64, arm64] = [
    await app.image("amd64", types.oci, "amd64"),
    await app.image("arm64", types.oci, "arm64"),
  ];
  const attestations = [await app.attestation(amd64, "amd64"), await app.attestation(arm64, "arm64")];
  const entries = [
    { ...amd64, platform: { architecture: "amd64", os: "linux" } },
    {
      ...arm64,
      platform: { architecture: "arm64", os: "linux", variant: "v8" },
      annotations: { note: "<b> & c" },
    },
    ...attestations,
  ];
  await app.index("1", entries, types.index, { annotations: { "org.opencontainers.image.title": "app" } });
  await app.index("bare", entries.slice(0, 2));
  await app.index("single", [entries[0], attestations[0]]);
  const windows = ["10.0.17763.1", "10.0.20348.2"].map((version) => ({
    ...amd64,
    ...{ urls: ["https://example.com/a", "https://example.com/b"], artifactType: "application/x" },
    platform: { architecture: "amd64", os: "windows", "os.version": version, "os.features": ["win32k", "x"] },
  }));
  await app.index("windows", windows.slice(0, 1));
  const inner = await app.index("inner", entries.slice(0, 1));
  await app.index("nested", [{ ...inner, platform: { architecture: "amd64", os: "linux" } }, entries[1]]);

  const old = openRepository(host, "team/old");
  const dockers = [
    await old.image("amd64", types.docker, "amd64"),
    await old.image("arm64", types.docker, "arm64"),
  ];
  await old.index(
    "list",
    dockers.map((each, at) => ({
      ...each,
      platform: { architecture: at === 0 ? "amd64" : "arm64", os: "linux" },
    })),
    types.list,
  );
}

function openRepository(host: string, name: string) {
  const url = `http://${host}/v2/${name}`;

  async function blob(bytes: Uint8Array, mediaType: string): Promise<Described> {
    const described = { mediaType, digest: digestOf(bytes), size: bytes.byteLength };
    const begun = await fetch(`${url}/blobs/uploads/`, { method: "POST" });
    const target = new URL(begun.headers.get("location") ?? "", url);
    target.searchParams.set("digest", described.digest);
    const { status } = await fetch(target, { method: "PUT", body: bytes });
    if (status !== 201) throw new Error(`a blob was not taken: ${status}`);
    return described;
  }

  async function manifest(reference: string, mediaType: string, fields: object): Promise<Described> {
    const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, ...fields }));
    const described = { mediaType, digest: digestOf(bytes), size: bytes.byteLength };
    const { status } = await fetch(`${url}/manifests/${reference === "" ? described.digest : reference}`, {
      ...{ method: "PUT", headers: { "content-type": mediaType }, body: bytes },
    });
    if (status !== 201) throw new Error(`a manifest was not taken: ${status}`);
    return described;
  }

  const json = (value: unknown, mediaType: string) => blob(Buffer.from(JSON.stringify(value)), mediaType);

  return {
    async image(tag: string, { manifest: mediaType, config, layer }: typeof types.oci, architecture: string) {
      const described = await json(configOf(architecture, digestOf(new Uint8Array(1024))), config);
      const layers = [await blob(emptyLayer, layer)];
      return manifest(tag, mediaType, { config: described, layers });
    },
    async attestation(subject: Described, architecture: string) {
      const statements = [
        statement("https://slsa.dev/provenance/v0.2", { ...provenance, architecture }),
        statement("https://spdx.dev/Document", spdx(`app-${architecture}`)),
        statement("https://spdx.dev/Document", spdx("build")),
      ];
      const layers = [];
      for (const each of statements) {
        const layer = await json(each, "application/vnd.in-toto+json");
        layers.push({ ...layer, annotations: { "in-toto.io/predicate-type": each.predicateType } });
      }
      const config = await json({ architecture: "unknown", os: "unknown" }, types.oci.config);
      const described = await manifest("", types.oci.manifest, { config, layers });
      return {
        ...described,
        annotations: {
          "vnd.docker.reference.digest": subject.digest,
          "vnd.docker.reference.type": "attestation-manifest",
        },
        platform: { architecture: "unknown", os: "unknown" },
      };
    },
    index: (tag: string, manifests: readonly unknown[], mediaType = types.index, others: object = {}) =>
      manifest(tag, mediaType, { manifests, ...others }),
  };
}

/** A kilobyte of zeros in gzip, as Docker has it. */
const emptyLayer = Buffer.from("H4sIAAAJbogA/2IYBaNgFIxYAAgAAP//Lq+17wAEAAA=", "base64");

const configOf = (architecture: string, diffId: string) => ({
  architecture,
  config: {
    ...{
      Env: ["PATH=/bin", "A=<&>"],
      Cmd: ["/bin/app"],
      WorkingDir: "/srv",
      User: "app",
      StopSignal: "SIGINT",
    },
    ...{
      ExposedPorts: { "80/tcp": {}, "443/tcp": {} },
      Volumes: { "/data": {} },
      Labels: { b: "2", a: "1" },
    },
    // Docker's own, which OCI does not have.
    Healthcheck: { Test: ["NONE"] },
  },
  created: "2024-02-29T12:34:56.789Z",
  author: "someone",
  history: [
    { created: "2024-02-29T12:34:56Z", created_by: "COPY app /bin/app", comment: "buildkit" },
    { created_by: 'CMD ["/bin/app"]', empty_layer: true },
  ],
  os: "linux",
  rootfs: { type: "layers", diff_ids: [diffId] },
  ...(architecture === "arm64" && { variant: "v8" }),
});

const statement = (predicateType: string, predicate: unknown) => ({
  ...{ _type: "https://in-toto.io/Statement/v0.1", predicateType },
  subject: [{ name: "pkg:docker/app@1", digest: { sha256: "0".repeat(64) } }],
  predicate,
});

const provenance = {
  builder: { id: "" },
  buildType: "https://mobyproject.org/buildkit@v1",
  materials: [{ uri: "pkg:docker/base@1?platform=linux%2Famd64", digest: { sha256: "1".repeat(64) } }],
  invocation: { parameters: { frontend: "dockerfile.v0", args: { "build-arg:A": "<x>" } }, environment: {} },
  metadata: {
    buildInvocationID: "abc",
    completeness: { parameters: true, materials: false },
    reproducible: false,
  },
  numbers: [0, 1, -2, 1.5, 100000, 1234567, 1e21, 1e-7, 0.000001],
  nothing: null,
};

const spdx = (name: string) => ({
  ...{ spdxVersion: "SPDX-2.3", SPDXID: "SPDXRef-DOCUMENT", name },
  packages: [
    { name: "busybox", versionInfo: "1.37" },
    { name: `lib${name}`, versionInfo: "2" },
  ],
});

function digestOf(bytes: Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
}
