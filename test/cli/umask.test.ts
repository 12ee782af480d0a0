/** The umask of whoever starts bough gets into no image and into nothing that a RUN sees. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";
import { usableRuntimes } from "../support/runtimes.ts";
import { tarOf } from "../support/tar-bytes.ts";

const dockerfile = `FROM base:1 AS one
RUN mkdir -p /made/here && echo x > /made/file
WORKDIR /pending
FROM base:1 AS two
WORKDIR /app/deep
RUN echo app:x:7:7::/home/app:/bin/sh >> /etc/passwd
USER app
RUN ls -d /app/deep && umask > /tmp/umask
WORKDIR /users/own
RUN true
USER root
COPY tree /copied/parents/tree
COPY tree/file /copied/file/
COPY --chown=7:7 tree /copied/owned/tree
COPY --from=one /made /copied/from/stage
COPY --from=one /made/file /copied/from/file/
COPY --from=one --parents /made/file /copied/from/parents/
COPY <<EOF /here/document/text
text
EOF
RUN <<EOF
#!/bin/sh
mkdir -p /script/of
EOF
ADD packed.tar /unpacked/here
ADD --chmod=644 tree/file /added/
FROM scratch AS empty
COPY --from=one /made /
FROM two
RUN --mount=type=cache,target=/cache/of --mount=type=cache,target=/cache/of/nested/deep --mount=type=tmpfs,target=/cache/of/memory/deep \\
  stat -c '%A %u %n' /cache /cache/of /cache/of/* /cache/of/*/* > /seen
RUN --mount=type=bind,target=/context --mount=type=bind,from=one,target=/image --mount=type=bind,from=one,target=/writable,rw \\
  --mount=type=secret,id=secret,target=/run/secrets/below/secret --mount=type=tmpfs,target=/memory/here \\
  --mount=type=bind,from=empty,target=/empty \\
  stat -c '%A %u %n' /context /context/tree /image /image/made /writable /run/secrets /run/secrets/* /memory /memory/here /empty >> /seen
RUN stat -c '%A %u %n' / /dev /dev/shm /etc/hosts /etc/resolv.conf >> /seen
USER app
RUN --mount=type=bind,target=/context --mount=type=bind,from=one,target=/image ls /context/tree /image/made
WORKDIR /last
`;

let layout: string;
beforeAll(async () => {
  layout = temporaryDirectory();
  await makeBusyboxLayout(layout);
});

let user: OrdinaryUser;
beforeAll(() => {
  user = makeOrdinaryUser();
  user.giveBough();
});
afterAll(() => user.remove());

interface Place {
  prefix: readonly string[];
  program: string;
  home: string;
  give: (path: string, name: string) => string;
}

const asRoot = (): Place => ({
  prefix: [],
  program: compileBough(),
  home: temporaryDirectory(),
  give: (path) => path,
});
const asUser = (): Place => ({ ...user, program: join(user.home, "bough") });

test.each(
  usableRuntimes().flatMap((runtime) => [
    [runtime, "root", runtime === "runc" ? "027" : "077", asRoot] as const,
    ...(runtime === "runc" ? [[runtime, "an ordinary user", "077", asUser] as const] : []),
  ]),
)(
  "with %s as %s, images are the same under the umasks 022 and %s",
  async (runtime, _, mask, open) => {
    const place = open();
    const base = place.give(layout, `layout-${runtime}`);
    const made = temporaryDirectory();
    writeFiles(made, {
      ".": { mode: 0o700 },
      tree: { mode: 0o755 },
      "tree/file": { text: "file\n", mode: 0o644 },
      Dockerfile: dockerfile,
      secret: "secret\n",
    });
    writeFileSync(join(made, "packed.tar"), tarOf([{ name: "not/an/entry/file", content: "text" }]));
    const context = place.give(made, `context-${runtime}`);
    chmodSync(context, 0o755);

    /** Returns the modes and owners of an image that is built under a umask, and those that its commands saw. */
    async function build(umask: string): Promise<string> {
      const home = join(place.home, `state-${runtime}-${umask}`);
      const script = `umask ${umask} && export BOUGH_HOME="$1" && bough="$2 --local" && cd "$3" &&
        $bough images import oci:$4:latest --tag base:1 >&2 &&
        $bough build --docker --secret id=secret,src=secret --output type=tar,dest="$1.tar" . >&2 &&
        tar --extract --to-stdout --file "$1.tar" seen && tar --list --verbose --numeric-owner --file "$1.tar"`;
      const environment = [`PATH=${process.env.PATH}`, `HOME=${place.home}`, `BOUGH_RUNTIME=${runtime}`];
      const words = ["sh", "-c", script, "sh", home, place.program, context, base];
      const command = [...place.prefix, "env", "-i", ...environment, ...words];
      const ended = await endOf(Bun.spawn(command, { stdout: "pipe", stderr: "pipe", stdin: "ignore" }));
      expect(ended).toMatchObject({ exitCode: 0 });
      return ended.stdout.replaceAll(/ +[0-9]+ [0-9-]{10} [0-9:]{5} /g, " ");
    }

    const usual = await build("022");
    expect(usual).toContain("drwxr-xr-x 0/0 app/deep/\n");
    expect(await build(mask)).toEqual(usual);
  },
  120_000,
);
