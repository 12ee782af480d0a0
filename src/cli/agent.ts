import { type ArgsDef, defineCommand } from "citty";
import type { Command, Invocation } from "./command.ts";

export const agent: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "agent", description: "Print the manual for coding agents." },
    args: {},
    run: ({ data }: { data?: Invocation }) => data?.runtime.stdout.write(manual),
  }),
  examples: [["agent", "read this first"]],
};

const manual = `# bough for coding agents

bough builds an image from a Dockerfile: every RUN is run on the service (or on the embedded engine where no service
is configured) and becomes a layer that later builds reuse.

## Build
  bough build . --tag app:dev          build ./Dockerfile, tag the result
  bough build -q .                     print nothing but the image's UUID on stdout
  bough build -f json .                {"image", "tag", "session"} on stdout
  bough build . --build-arg KEY=VALUE  value of a declared ARG
  bough build . --no-cache             ignore the layers of earlier builds
  bough build . --timeout 1800         seconds that each RUN may take (default 600)

- It is mutating: it starts operations, stores images, moves the tag.
- The layer cache is per context directory (its absolute path); run it from the same place to profit.
- COPY and ADD only stage files: they become part of the image with the next RUN, or at the end.
- Log lines go to stderr ([INFO], [WARN], [ERROR]), results to stdout.
- Exit codes: 0 done; 1 the build failed; 2 bad usage or a Dockerfile that does not parse; 130 interrupted.
- A failing RUN prints its Dockerfile line, exit code and whole output; what was built before it stays cached.
- CMD, ENTRYPOINT, LABEL and other image settings are skipped with a warning; so is COPY --from (one stage only).

## Look around
  bough images                         images of the service
  bough images import alpine:3.20      import a base image
  bough session list --filter build:   one session for every context that was built
  bough session show build:<sha16>     its layers: id, image, parent, kind, title, branches

## Which service
--url/--token/--project, else the profile of the service's clients, else CONTREE_URL/CONTREE_TOKEN/CONTREE_PROJECT,
else the embedded engine. --local always takes the engine. One [INFO] line says which one is in use.
`;
