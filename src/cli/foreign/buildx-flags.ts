/** Every flag of `docker buildx build`, of 0.13 and of today, and what becomes of it. A topic of the manual is made from it. */
import { dockerBuild } from "./build-options.ts";

/** `words`: a use of the flag that works. */
interface WorkingFlag {
  flag: string;
  text: string;
  words: string;
}

/** Flags that `bough build` has as well. The others are in the table of foreign options. */
export const workingFlags: readonly WorkingFlag[] = [
  { flag: "--add-host NAME:IP", text: "the same, on bough's own engine", words: "--add-host a:10.0.0.1" },
  {
    flag: "--allow ENTITLEMENT",
    text: "`network.host` is the same; there are no others",
    words: "--allow network.host",
  },
  {
    flag: "--annotation KEY=VALUE",
    text: "the same, with `-o type=oci` or `--push`",
    words: "--annotation a=b -o type=oci,dest=x",
  },
  {
    flag: "--attest type=TYPE",
    text: "`provenance` (mode, builder-id) and `sbom`, without a generator",
    words: "--attest type=provenance,mode=max -o type=oci,dest=x",
  },
  { flag: "--build-arg KEY=VALUE", text: "the same", words: "--build-arg A=1" },
  { flag: "--build-context NAME=VALUE", text: "the same", words: "--build-context lib=." },
  {
    flag: "--cache-from SOURCE",
    text: "scopes of the service; `type=registry` and the like are refused",
    words: "--cache-from main",
  },
  {
    flag: "--cache-to DESTINATION",
    text: "a scope of the service; `type=registry` and the like are refused",
    words: "--cache-to main",
  },
  { flag: "--call METHOD", text: "`build`, `check`, `outline`, `targets`", words: "--call outline" },
  { flag: "--check", text: "the same, with further checks", words: "--check" },
  {
    flag: "-f, --file PATH",
    text: "the same; `-f` with `BOUGH_DOCKER=1` or `bough --docker`",
    words: "-f Dockerfile",
  },
  {
    flag: "--iidfile FILE",
    text: "the digest of its configuration if the image is written or pushed, else its UUID; `bough run` and the others take both",
    words: "--iidfile id",
  },
  { flag: "--label KEY=VALUE", text: "the same", words: "--label a=b" },
  { flag: "--memory SIZE", text: "limits each RUN; buildx ignores it", words: "--memory 64m" },
  {
    flag: "--metadata-file FILE",
    text: "bough's own keys, and `containerimage.config.digest`, `containerimage.digest`, `containerimage.descriptor`, `image.name`",
    words: "--metadata-file meta",
  },
  { flag: "--network MODE", text: "`default`, `none`, `host`", words: "--network none" },
  { flag: "--no-cache", text: "the same", words: "--no-cache" },
  { flag: "--no-cache-filter STAGE", text: "the same", words: "--no-cache-filter 0" },
  {
    flag: "-o, --output OUTPUT",
    text: "the same types, with `dest`, `name`, `push`, `tar`, `compression`, `force-compression`, `rewrite-timestamp`, `registry.insecure`; `compression-level` is ignored, `oci-mediatypes=false` refused; `type=docker` needs `dest`",
    words: "-o type=image,name=a:1,oci-mediatypes=true,compression-level=3",
  },
  {
    flag: "--platform PLATFORM",
    text: "the platform of the service; several are refused",
    words: "--platform linux/amd64",
  },
  { flag: "--print METHOD", text: "as `--call`", words: "--print targets" },
  {
    flag: "--progress MODE",
    text: "the same; the events of `rawjson` are [bough's own](json.md)",
    words: "--progress rawjson",
  },
  {
    flag: "--provenance VALUE",
    text: "`true`, `false`, `mode=min`, `mode=max` (default), `builder-id`; false unless it is given",
    words: "--provenance=false",
  },
  { flag: "--pull", text: "the same", words: "--pull" },
  { flag: "--push", text: "the same", words: "--push --tag localhost:5000/a" },
  { flag: "-q, --quiet", text: "the same", words: "-q" },
  { flag: "--sbom VALUE", text: "`true`, `false`; without a generator", words: "--sbom=false" },
  { flag: "--secret id=ID", text: "the same", words: "--secret id=a,env=A" },
  { flag: "--shm-size SIZE", text: "the same", words: "--shm-size 1g" },
  {
    flag: "--ssh default",
    text: "an agent's socket; not a key: `ssh-add` adds keys to an agent",
    words: "--ssh default=/dev/null --call targets",
  },
  {
    flag: "-t, --tag NAME",
    text: "the same; `-t` with `BOUGH_DOCKER=1` or `bough --docker`",
    words: "-t a:1 -t b",
  },
  { flag: "--target STAGE", text: "the same", words: "--target 0" },
  { flag: "--ulimit LIMIT", text: "the same", words: "--ulimit nofile=64" },
];

/** Returns the topic of the manual. */
export function describeBuildxFlags(): string {
  const rows = [
    ...workingFlags.map(({ flag, text }): [string, string] => [flag, text]),
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
