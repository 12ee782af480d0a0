import { version } from "../../version.ts";
import { command } from "../command-line/command.ts";

/**
 * The manual for coding agents. Lines that begin with two spaces and `bough` are command lines, each run by a test.
 * Two or more spaces separate a command line from its description.
 */
export const manual = `# bough ${version} for coding agents

bough builds images from Dockerfiles and runs commands in them: on an image service, or where none is configured on its
own embedded engine (Linux). Without a terminal it never asks questions.

## Before anything else
- A Dockerfile that \`docker build\` builds: give --docker, or set BOUGH_DOCKER=1. Without it the image differs from
  Docker's: every stage is built; COPY --from, CMD, ENTRYPOINT, LABEL and similar instructions are skipped with a
  warning; .git, node_modules, dist, build and similar files are not copied; a RUN goes to /bin/sh, after declared ARG
  and ENV names have been replaced in it; a --build-arg overrides an ENV.
- \`bough run -- COMMAND\` with -D, unless you want to keep its changes. A session (-S KEY) of its own for every task.
- Instead of command lines: \`bough mcp\` has the most used ones as tools, for a client of the Model Context Protocol.

## From a Dockerfile to work in its image
  bough build . --tag app:dev                   build ./Dockerfile; every RUN becomes a cached layer
  bough -S k use tag:app:dev                    the session k works in that image from now on
  bough -S k run -D -- app --version            one command in it; its changes are thrown away
  bough session list --filter build:            one session for every context that was built
  bough session show build:0123456789abcdef     a build's layers, as a tree

## Output and exit codes
- Results go to stdout, log lines ([INFO], [WARN], [ERROR]) to stderr. -q prints ids only and logs errors only.
- --format json prints one object or one array; errors are then {"error": {"code", "message", "hint"}} on stderr. -f is
  short for it, but not in \`build\` with --docker, where -f is the Dockerfile.
- 0 done; 1 the build or call failed; 2 bad usage or a Dockerfile that does not parse; 130 interrupted.
- \`bough run IMAGE [ARG...]\` runs the image's ENTRYPOINT, with ARGs instead of its CMD, and keeps nothing without -S
  or --keep. \`bough run -- COMMAND\` runs as given in the session's image.
- \`bough run\` exits with the command's own code; with 127 if its program is missing, 126 if that
  is not executable, 1 if the sandbox could not be started.
- Errors say what to do next. Every command has -h.

## Build
  bough build -q .                              print nothing but the image's UUID
  bough build --format json .                   {"image", "tag", "tags", "session", "digest", "exported"}
  bough build . --build-arg VERSION=1.2         value of a declared ARG
  bough build . --no-cache                      ignore the layers of earlier builds
  bough build . --no-cache-filter deps          the same for one stage and what uses it; implies --docker
  bough build . --pull                          ask the registries for FROM's images again
  bough build . --explain                       say why each step was not cached
  bough history show -f json                    the last build: times, reasons of misses, its error; see logs, diff, too
  bough build . --cache auto                    share layers with other machines, by scopes on the service
  bough build . --cache-from main               the same by a scope's name; --cache-to NAME writes one
  bough build . --check --format json           parse, plan and lint without a service; exit 2 if it can't be built
  bough build . --check --lock bough.lock       --lock: use the digests, hashes and commits in a file, and add to it
  bough build . --timings                       the critical path and the slowest steps; --trace FILE for Perfetto
  bough build . --timeout 1800                  seconds that each RUN may take (default 600)
  bough build . --network none                  no RUN reaches any network; host: this machine's
  bough build . --secret id=npm,env=NPM_TOKEN   for RUN --mount=type=secret,id=npm; src=FILE is a file; --ssh default
  bough build . --memory 8g --pids 2000 --cpus 2  limits of each RUN; \`run\` takes them, too (bough's own engine)
  bough build . --shm-size 1g --ulimit nofile=4096  further limits, as in docker; \`run\` takes them, too
- It is mutating: it starts operations, stores images, moves the tag.
- The layer cache is per context: a directory's absolute path, or the address it comes from.
  On another machine --cache-from reuses what --cache-to wrote. \`bough cache list\` shows scopes, \`cache show\` layers.
- CONTEXT may be a git repository (https://host/x.git#ref:dir, git@host:x), the URL of a tar archive, or \`-\`.
  Then a relative --dockerfile is a path in the fetched context, an absolute one a file of this machine.
- On the engine each COPY and ADD makes a layer. On other services they only stage files, which become part of the image
  with the next RUN, or at the end.
- .git, node_modules, dist, build and similar files are never copied, unless --no-default-excludes is given.
- On the engine a RUN reaches the outside, but not this machine's loopback, unless --network host is given.
  RUN --network=host needs --allow network.host. --add-host NAME:IP (or NAME:host-gateway) adds to /etc/hosts.
- FROM oci:./PATH and the like need --allow-local-from, and a PATH below the context.
- --build-context NAME=DIR (or docker-image://REFERENCE, https://HOST/X.git#REF:DIR) is what FROM NAME and --from=NAME
  mean; implies --docker.
- --target STAGE implies --docker. With it, independent stages are built at the same time.

## A failed build
It prints the Dockerfile line, exit code and whole output, and a command line that runs another command in the step's
place: with its files, ENV, ARG, WORKDIR, USER, mounts and network, without secrets and limits (give --ulimit again).
  bough -S build:0123456789abcdef run -D --failed-step -s -- 'ls -l && env'
  bough -S build:0123456789abcdef session checkout layer:0123456789ab   or continue from any layer
Then fix the Dockerfile and build again: the layers before the step stay cached.

## Run
  bough -S k run -D -s -- 'ls -l | head -3'     a shell expression
  bough -S k run -D -e DEBUG=1 -C /srv -- env   environment, working directory (default /)
  bough -S k run -D -F ./src:/src -- ls /src    copy local files and directories into the image first
  bough -S k run -D -F app.sh:/bin/app:u0:m0755 --file-excludes '*.log' -- app
  bough -S k run -D -t 60 -- make test          at most 60 seconds
  bough -S k run -D app:dev true                in another image, as with docker run; -- may follow it
  bough -S k run -D -f json -- echo hi          {"operation", "exitCode", "image", "stdout", "stderr", ...}
- -I FILE runs a local script, its arguments after IMAGE or --; --env-file FILE has one variable per line; -v
  DIR:PATH[:ro] mounts a directory of this machine itself (bough's own engine).
- The first word that is not an option is an image: without one the command goes after --. What is piped in
  is its standard input: give it </dev/null in scripts whose own input stays open. It has no terminal:
  \`run -it\` and \`bough shell\` are for people.
- Ctrl-C and SIGTERM cancel the operation on the service.

## Operations
  bough -S k run -d -D -- sleep 30              do not wait: prints the operation's id
  bough ps                                      what is under way; --all also lists those that have ended
  bough ps --all --since 1h -f json
  bough show OP                                 status, exit code, resulting image
  bough logs OP                                 its output so far; --follow until its end
  bough kill OP                                 cancel it
\`bough wait OP...\` ends when all of them have ended, with the first exit code that is not 0; --timeout SEC limits it.
The image that results from \`run -d\` does not become the session's: \`bough use\` the one that \`bough show\` shows.
SUCCESS means that the command ran to its end: look at the exit code.

## Images and their files
  bough images                                  those with a tag, and each session's newest; --all has every layer
  bough images --tag app:                       images by the beginning of their tag
  bough images import alpine:3.20 debian:12     import images from a registry; FROM does so automatically
  bough images import docker-archive:app.tar    with its names; a tag moves to what was imported last
  bough images export app:dev oci:./layout:dev  or oci-archive:, docker-archive:, dir:; files: rootfs:DIR, tar:FILE
  bough push app:dev registry.example/app:1     credentials are those of docker login; sends what the registry lacks
  bough inspect app:dev                         configuration, layers and their sizes; --layer N: its files (engine)
  bough ls app:dev:/etc                         without IMAGE: a path in the session's image
  bough cat app:dev:/etc/os-release
  bough cp app:dev:/etc/os-release .            no operation is started for these three
  bough tag app:dev app:1.0                     by UUID, tag:NAME or tag; some services keep only one tag per image
  bough untag app:1.0
On the embedded engine \`bough images remove IMAGE\` removes a tag, and the image with its last tag. The first 8 digits
of an id name an image or an operation everywhere.

## Sessions
A session (-S KEY, else BOUGH_SESSION, else \`default\`) is a tree of images on this machine, with branches. Give every
task its own. Builds ignore -S.
  bough -S k use                                which image, on which branch
  bough -S k run -- apt-get update              without -D the result is the session's new image, whatever the exit code
  bough -S k session rollback                   undo the last run or use; \`rollback 3\` the last three
  bough -S k session branch try                 a branch at the current image; \`--from BRANCH\` or \`--from ID\` elsewhere
  bough -S k session checkout try               continue from there
  bough -S k session show                       the history as a tree; a filled circle marks the current image
  bough -S k session branch try2 --from ID      or at an entry that session show lists
  bough -S k session branch try2 --delete
  bough session delete k                        images stay

## Which service
--url/--token/--project, else the profile of the service's clients (\`bough auth\`), else CONTREE_URL, CONTREE_TOKEN and
CONTREE_PROJECT, else the embedded engine; --local always takes the engine. The log's first line says which one it is;
if no option or variable chose it, there is no such line, and it is the engine.
  bough auth list                               saved profiles, and whether their tokens are accepted
  bough --local engine df                       what the engine stores on this machine, and what uses it
  bough --local engine check                    look for damage: reads everything; --repair drops what is damaged
  bough --local engine prune                    what is no longer needed; -y removes it
  bough --local engine prune --keep 10GB        also the least recently used, until 10 GB are left
`;

export const agent = command({
  name: "agent",
  description: "Print the manual for coding agents.",
  run: ({ runtime }) => runtime.stdout.write(manual),
  examples: [
    ["agent", "read this first"],
    ["agent | less", "page by page"],
  ],
  agentNote: "Read it once: every command line in it is run by a test of this version.",
});
