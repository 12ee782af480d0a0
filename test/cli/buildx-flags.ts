/** Every flag of `docker buildx build`, of 0.13 and of today, and what becomes of it. A topic of the manual is made from it. */
import { dockerBuild } from "../../src/cli/foreign/build-options.ts";

/** Flags that `bough build` has as well, what they do, and words that use them. The others are in the table of foreign options. */
export const workingFlags: readonly (readonly [flag: string, text: string, words: string])[] = [
  ["--add-host NAME:IP", "the same, on bough's own engine", "--add-host a:10.0.0.1"],
  ["--allow ENTITLEMENT", "`network.host` is the same; there are no others", "--allow network.host"],
  [
    "--annotation KEY=VALUE",
    "the same, with `-o type=oci` or `--push`",
    "--annotation a=b -o type=oci,dest=x",
  ],
  [
    "--attest type=TYPE",
    "`provenance` (mode, builder-id) and `sbom` (generator). `inline-only=true` is for images that are pushed or loaded: other outputs have none then",
    "--attest type=provenance,mode=max -o type=oci,dest=x",
  ],
  ["--build-arg KEY=VALUE", "the same", "--build-arg A=1"],
  ["--build-context NAME=VALUE", "the same", "--build-context lib=."],
  [
    "--cache-from SOURCE",
    "scopes of the service, `type=registry`, `type=local` and `type=gha`; `s3`, `azblob` and `inline` are refused",
    "--cache-from main",
  ],
  [
    "--cache-to DESTINATION",
    "a scope of the service, `type=registry`, `type=local` and `type=gha`; `s3`, `azblob` and `inline` are refused",
    "--cache-to main",
  ],
  [
    "--call METHOD",
    "`build`, `check`, `outline`, `targets`; with `,format=json` buildx's JSON, without BuildKit's own `definition`; `,ignorestatus=true`",
    "--call outline",
  ],
  ["--check", "the same, with further checks", "--check"],
  ["-f, --file PATH", "the same; `-f` with `BOUGH_DOCKER=1` or `bough --docker`", "-f Dockerfile"],
  [
    "--iidfile FILE",
    "the digest of its configuration if the image is written or pushed, else its UUID; `bough run` and the others take both. For several platforms: the index's digest, else the first one's UUID",
    "--iidfile id",
  ],
  ["--label KEY=VALUE", "the same", "--label a=b"],
  ["--memory SIZE", "limits each RUN; buildx ignores it", "--memory 64m"],
  [
    "--metadata-file FILE",
    "bough's own keys, and `containerimage.config.digest`, `containerimage.digest`, `containerimage.descriptor`, `image.name`, `buildx.build.ref`, `buildx.build.provenance`, `buildx.build.warnings` (`BUILDX_METADATA_PROVENANCE`, `BUILDX_METADATA_WARNINGS`)",
    "--metadata-file meta",
  ],
  [
    "--load",
    "to docker's daemon, if there is one; else the image stays in bough's own store, which is said",
    "--load",
  ],
  ["--network MODE", "`default`, `none`, `host`", "--network none"],
  ["--no-cache", "the same", "--no-cache"],
  ["--no-cache-filter STAGE", "the same", "--no-cache-filter 0"],
  [
    "-o, --output OUTPUT",
    "the same types, with `dest`, `name`, `push`, `tar`, `compression`, `force-compression`, `rewrite-timestamp`, `registry.insecure`, `oci-mediatypes`, `push-by-digest`, `platform-split`, `annotation.KEY`; `compression-level` is ignored; `type=docker` without `dest` is `--load`",
    "-o type=oci,dest=x,oci-mediatypes=false,annotation.a=b,compression-level=3",
  ],
  [
    "--platform PLATFORM",
    "on the engine as in buildx, also several (`bough help platforms`); a service of one platform builds for that; `--platform-service` stands for a builder's nodes",
    "--platform linux/amd64",
  ],
  ["--print METHOD", "as `--call`", "--print targets"],
  [
    "--progress MODE",
    "the same; `rawjson` prints BuildKit's statuses, `json` [bough's own events](json.md)",
    "--progress rawjson",
  ],
  [
    "--provenance VALUE",
    "`true`, `false`, `mode=min`, `mode=max` (default), `builder-id`; false unless it is given, except [as docker's builder](docker.md#as-dockers-builder)",
    "--provenance=false",
  ],
  ["--pull", "the same", "--pull"],
  ["--push", "the same", "--push --tag localhost:5000/a"],
  ["-q, --quiet", "the same", "-q"],
  ["--sbom VALUE", "`true`, `false`, `generator=IMAGE`", "--sbom=false"],
  ["--secret id=ID", "the same", "--secret id=a,env=A"],
  ["--shm-size SIZE", "the same", "--shm-size 1g"],
  [
    "--ssh default",
    "the same; keys with a passphrase need an agent",
    "--ssh default=/dev/null --call targets",
  ],
  ["-t, --tag NAME", "the same; `-t` with `BOUGH_DOCKER=1` or `bough --docker`", "-t a:1 -t b"],
  ["--target STAGE", "the same", "--target 0"],
  ["--ulimit LIMIT", "the same", "--ulimit nofile=64"],
];

/** Returns the topic of the manual. */
export function describeBuildxFlags(): string {
  const rows = [
    ...workingFlags.map(([flag, text]): [string, string] => [flag, text]),
    ...dockerBuild.map(([usage, outcome, text, ignoredValue]): [string, string] => {
      const how = ignoredValue === undefined ? outcome : `${outcome}, except ${ignoredValue}`;
      return [usage, `${how}: ${text.replace(/\.$/, "")}`];
    }),
  ].sort(([one], [other]) => (sortKey(one) < sortKey(other) ? -1 : 1));
  return `# Every flag of docker buildx build

What each flag of \`docker buildx build\`, of version 0.13 and of today, does in \`bough build --docker\`. With \`BOUGH_DOCKER=1\`, or as
\`bough --docker build\`, \`-t\` and \`-f\` are docker's, too, so that a command line written for docker runs unchanged. What is ignored is
said in one line; what is refused is refused before anything is built.

| flag | here |
|---|---|
${rows.map(([flag, text]) => `| \`${flag}\` | ${text.replaceAll("|", "\\|")} |`).join("\n")}
`;
}

function sortKey(usage: string): string {
  return /--?([\w-]+)(?: |$)(?!.*--)/.exec(usage)?.[1] ?? usage;
}
