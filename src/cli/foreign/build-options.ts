/** Options of other build programs that `bough build` lacks. */
import { type ForeignOption, foreignOptions } from "../command-line/foreign-options.ts";

const noContainers = "bough keeps no containers";
const cpus = "--cpus limits the processors of each RUN";
const memory = "--memory limits the memory of each RUN, swap included";
const namespaces = "a RUN has namespaces of its own; --network host shares this machine's network";
const services = "--url or --profile names another service, --local the embedded engine.";
const capabilities =
  "A RUN has docker's default capabilities and filter of system calls: there are no others.";
const volumes = "RUN --mount in the Dockerfile mounts files of the context, caches and secrets.";
const platforms = "Write --platform OS/ARCH[,OS/ARCH...].";
const compression = "With -o, write: -o type=oci,dest=FILE,compression=gzip (or zstd, uncompressed).";
const times = "SOURCE_DATE_EPOCH=SECONDS, in the environment, sets the times of the image.";
const logs = "Standard error is the log: write `2> FILE`.";
const scopes = "--cache-to SCOPE and --cache-from SCOPE share layers between machines, --no-cache rebuilds.";
const insecure = "--tls-verify=false allows a registry without TLS, or with an unknown certificate.";
const pushes = "Give the destination as the tag, and --push: bough build --tag HOST/NAME:TAG --push";

/** `docker buildx build`, and the older `docker build`. */
export const dockerBuild: readonly ForeignOption[] = [
  ["--builder NAME", "refused", services, "default"],
  ["--cgroup-parent NAME", "ignored", "the engine makes the control groups itself, below its own"],
  ["--compress", "ignored", "the context is not sent: the engine reads it where it is"],
  ["-c, --cpu-shares N", "ignored", cpus],
  ["--cpu-period N", "ignored", cpus],
  ["--cpu-quota N", "ignored", cpus],
  ["--cpuset-cpus LIST", "ignored", cpus],
  ["--cpuset-mems LIST", "ignored", cpus],
  ["-D, --debug", "refused", "-L debug logs more; --on-error shell opens a shell at a step that fails."],
  ["--disable-content-trust", "ignored", "images are identified by what they contain"],
  ["--force-rm", "ignored", noContainers],
  ["--invoke COMMAND", "refused", "--on-error shell opens a shell at a step that fails."],
  ["--isolation KIND", "refused", `Leave it out: ${namespaces}.`],
  ["-m SIZE", "ignored", memory],
  ["--memory-swap SIZE", "ignored", memory],
  ["--rm", "ignored", noContainers],
  ["--root DIRECTORY", "refused", services],
  ["--security-opt OPTION", "refused", capabilities],
  ["--server-config FILE", "refused", services],
  [
    "--squash",
    "refused",
    "Leave it out: each RUN is a layer. `bough inspect` shows what makes layers large.",
  ],
  ["--stream", "ignored", "the context is not sent: the engine reads it where it is"],
];

/** `podman build`, and `buildah build`. */
export const podmanBuild: readonly ForeignOption[] = [
  ["--all-platforms", "refused", platforms],
  ["--arch NAME", "refused", platforms],
  ["--cache-ttl TIME", "refused", "`bough engine prune --older-than AGE` removes old layers."],
  ["--cap-add CAPABILITY", "refused", capabilities],
  ["--cap-drop CAPABILITY", "refused", capabilities],
  ["--cert-dir DIR", "refused", "Certificates of registries: see certs.d in containers-certs.d(5)."],
  ["--cgroupns MODE", "refused", `Leave it out: ${namespaces}.`],
  [
    "--cpp-flag FLAG",
    "refused",
    "Run the preprocessor first: cpp FLAGS Dockerfile.in | bough build --dockerfile - .",
  ],
  ["--creds USER", "refused", "--authfile FILE, or `docker login`, gives credentials."],
  ["--decryption-key KEY", "refused", "Encrypted images are not supported."],
  ["--device PATH", "refused", "A RUN has no devices of this machine."],
  ["--disable-compression", "refused", compression],
  ["--dns IP", "refused", "A RUN uses this machine's name servers; --add-host NAME:IP adds a name."],
  ["--dns-option OPTION", "refused", "A RUN uses this machine's name servers."],
  ["--dns-search DOMAIN", "refused", "A RUN uses this machine's name servers."],
  ["--env VARIABLE", "refused", "ENV in the Dockerfile sets a variable, --build-arg the value of an ARG."],
  ["--from IMAGE", "refused", "FROM in the Dockerfile may name an ARG: --build-arg NAME=IMAGE sets it."],
  ["--hooks-dir DIR", "refused", "There are no OCI hooks: a RUN is what runs."],
  ["--http-proxy", "refused", "--build-arg HTTP_PROXY=URL passes a proxy to each RUN."],
  ["--identity-label", "ignored", "bough adds no labels of its own"],
  [
    "--ignorefile FILE",
    "refused",
    "Name it like the Dockerfile: DOCKERFILE.dockerignore comes before .dockerignore.",
  ],
  ["--inherit-labels", "ignored", "an image has the labels of its base"],
  ["--ipc MODE", "refused", `Leave it out: ${namespaces}.`],
  ["--layers", "ignored", "layers are always reused, unless --no-cache is given"],
  ["--layer-label LABEL", "refused", "Layers have no labels: --label sets one of the image."],
  ["--logfile FILE", "refused", logs],
  ["--logsplit", "refused", logs],
  ["--manifest NAME", "refused", "--tag names the images of all platforms."],
  ["--no-hosts", "refused", "--network none leaves a RUN without a network."],
  ["--omit-history", "refused", "Leave it out: an image keeps its history."],
  ["--os NAME", "refused", platforms],
  ["--os-feature NAME", "refused", platforms],
  ["--os-version VERSION", "refused", platforms],
  ["--pid MODE", "refused", `Leave it out: ${namespaces}.`],
  ["--pull-always", "refused", "Write --pull."],
  ["--pull-never", "refused", "Leave it out: an image that is stored is not imported again."],
  ["--retry-delay TIME", "refused", "Leave it out: bough tries failed requests again."],
  ["--rewrite-timestamp", "refused", times],
  ["--runtime NAME", "refused", "BOUGH_RUNTIME chooses runc or crun."],
  ["--runtime-flag FLAG", "refused", "BOUGH_RUNTIME chooses runc or crun."],
  ["--sbom-output FILE", "refused", "--sbom records packages with the image written or pushed."],
  ["--sign-by KEY", "refused", "Sign it in the registry: cosign sign HOST/NAME@DIGEST"],
  ["--skip-unused-stages", "ignored", "with --docker only needed stages are built"],
  ["--source-date-epoch SECONDS", "refused", times],
  [
    "--squash-all",
    "refused",
    "Leave it out. `bough images export IMAGE tar:FILE` writes all files as one archive.",
  ],
  ["--stdin", "refused", "A RUN reads no standard input: write RUN <<EOF, or COPY a file."],
  ["--timestamp SECONDS", "refused", times],
  ["--unsetenv NAME", "refused", "ENV NAME= in the Dockerfile empties a variable."],
  ["--unsetlabel NAME", "refused", "LABEL NAME= in the Dockerfile empties a label."],
  ["--userns MODE", "refused", `Leave it out: ${namespaces}.`],
  ["--userns-gid-map MAP", "refused", `Leave it out: ${namespaces}.`],
  ["--userns-gid-map-group NAME", "refused", `Leave it out: ${namespaces}.`],
  ["--userns-uid-map MAP", "refused", `Leave it out: ${namespaces}.`],
  ["--userns-uid-map-user NAME", "refused", `Leave it out: ${namespaces}.`],
  ["--uts MODE", "refused", `Leave it out: ${namespaces}.`],
  ["--variant NAME", "refused", platforms],
  ["-v, --volume DIR:PATH", "refused", volumes],
];

/** The executor of kaniko. */
export const kaniko: readonly ForeignOption[] = [
  ["--cache-copy-layers", "ignored", "every layer is reused"],
  ["--cache-run-layers", "ignored", "every layer is reused"],
  ["--cache-dir DIR", "refused", scopes],
  ["--cache-repo NAME", "refused", scopes],
  ["--cleanup", "ignored", "bough changes nothing of this machine's files"],
  ["--compressed-caching", "ignored", "layers are not held in memory"],
  ["--compression KIND", "refused", compression],
  ["--compression-level N", "refused", compression],
  ["--context SOURCE", "refused", "The context is an argument of its own: bough build DIR"],
  ["--context-sub-path PATH", "refused", "Write it in the context's address: https://HOST/X.git#REF:PATH"],
  ["--custom-platform PLATFORM", "refused", platforms],
  ["--customPlatform PLATFORM", "refused", platforms],
  ["-d, --destination NAME", "refused", pushes],
  ["--force", "ignored", "bough runs everywhere"],
  ["--git SETTINGS", "refused", "Write the address: bough build https://HOST/X.git#REF:DIR"],
  ["--ignore-path PATH", "refused", ".dockerignore leaves out files of the context."],
  ["--ignore-var-run", "ignored", "a RUN has a /var/run of its own image"],
  ["--image-fs-extract-retry N", "ignored", "bough tries failed requests again"],
  ["--image-name-with-digest-file FILE", "refused", "--metadata-file FILE has names and digests as JSON."],
  [
    "--image-name-tag-with-digest-file FILE",
    "refused",
    "--metadata-file FILE has names and digests as JSON.",
  ],
  ["--insecure", "refused", insecure],
  ["--insecure-pull", "refused", insecure],
  ["--insecure-registry NAME", "refused", insecure],
  ["--kaniko-dir DIR", "refused", "BOUGH_HOME=DIR names the directory of bough's state."],
  ["--log-format FORMAT", "refused", "--progress plain or rawjson chooses the form of the log."],
  ["--log-timestamp", "refused", "--progress rawjson has times."],
  ["--materialize", "ignored", "a build's image is complete"],
  ["--no-push", "ignored", "nothing is pushed without --push"],
  ["--no-push-cache", "ignored", "no layers are shared without --cache-to"],
  ["--oci-layout-path DIR", "refused", "-o type=oci,dest=FILE writes an OCI layout as an archive."],
  ["--preserve-context", "ignored", "bough changes nothing of this machine's files"],
  ["--push-ignore-immutable-tag-errors", "refused", "A tag that the registry does not let move is an error."],
  [
    "--registry-certificate FILE",
    "refused",
    "Certificates of registries: see certs.d in containers-certs.d(5).",
  ],
  [
    "--registry-client-cert FILE",
    "refused",
    "Certificates of registries: see certs.d in containers-certs.d(5).",
  ],
  [
    "--registry-map MAP",
    "refused",
    "--registry-mirror is for Docker Hub; of others, see containers-registries.conf(5).",
  ],
  ["--reproducible", "ignored", "the same layers are written as the same bytes"],
  ["--secure", "ignored", "a RUN is always isolated"],
  ["--single-snapshot", "refused", "Leave it out: each RUN is a layer."],
  [
    "--skip-default-registry-fallback",
    "refused",
    "`location` in registries.conf has a registry read elsewhere only: see containers-registries.conf(5).",
  ],
  ["--skip-push-permission-check", "ignored", "bough makes no test push"],
  ["--skip-tls-verify", "refused", insecure],
  ["--skip-tls-verify-pull", "refused", insecure],
  ["--skip-tls-verify-registry NAME", "refused", insecure],
  ["--snapshot-mode MODE", "ignored", "layers are what the kernel records of a RUN's changes"],
  ["--snapshotMode MODE", "ignored", "layers are what the kernel records of a RUN's changes"],
  ["--tar-path FILE", "refused", "-o type=docker,dest=FILE writes an archive."],
  ["--tarPath FILE", "refused", "-o type=docker,dest=FILE writes an archive."],
  ["--use-new-run", "ignored", "layers are what the kernel records of a RUN's changes"],
  ["--verbosity LEVEL", "refused", "-L debug logs more, -L error less."],
  ["-v LEVEL", "refused", volumes],
];

export const foreignBuildOptions = foreignOptions(dockerBuild, podmanBuild, kaniko);
