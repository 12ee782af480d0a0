/**
 * A state directory that was copied, such as a CI's cache. Copies that lose overlayfs's marks of deleted files make damaged
 * layers: what a RUN has deleted must not be back.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { rowsFor } from "../../support/rows.ts";
import { type Builder, builders } from "./builder.ts";

const dockerfile = `FROM busybox:1
RUN mkdir /private && echo secret > /private/key && echo token > /token
RUN rm -r /private && mkdir /private
RUN echo kept > /kept
RUN rm /token
RUN echo last > /last
`;

interface Loss {
  /** The commands that the next build runs again. */
  again: string[];
  /** What `engine check` says. */
  problem?: string;
}

const everything: Loss = { again: [] };
const withoutOpaque: Loss = {
  again: ["rm -r", "echo kept", "rm", "echo last"],
  problem: "1 of 1 opaque directory mark",
};
const withoutWhiteouts: Loss = { again: ["rm", "echo last"], problem: "1 of 1 whiteout" };

/** Some programs can't copy devices, or are told not to. */
const leavingOutDevices = `mkdir "$2" && cd "$1" && find . ! -type c -print0 |
  tar --xattrs '--xattrs-include=*' --no-recursion --null --files-from - --create | tar -C "$2" --xattrs '--xattrs-include=*' -xp`;

const copies: [name: string, script: string, loss: Loss][] = [
  ["mv", 'mv "$1" "$2"', everything],
  ["cp -a", 'cp -a "$1" "$2"', everything],
  ["cp -r", 'cp -r "$1" "$2"', withoutOpaque],
  ["tar without --xattrs", 'mkdir "$2" && tar -C "$1" -c . | tar -C "$2" -xp', withoutOpaque],
  ["tar without devices", leavingOutDevices, withoutWhiteouts],
];

describe.each(builders)("as %s", (who, make) => {
  let builder: Builder;
  beforeAll(async () => {
    builder = await make();
    builder.writeContext({ Dockerfile: dockerfile });
    const archive = join(builder.home, "app.tar");
    for (const words of [
      ["build", "--tag", "app:1", "--output", `type=oci,dest=${archive}`, "."],
      ["images", "import", `oci-archive:${archive}`, "--tag", "imported:1"],
    ])
      expect(await builder.bough(words)).toMatchObject({ exitCode: 0 });
    builder.keep();
  });
  afterAll(() => builder.remove());

  test.each(rowsFor(who, copies, ["cp -a", "tar without --xattrs", "tar without devices"]))(
    "%s",
    async (_name, script, { again, problem }) => {
      builder.reset();
      const copied = join(builder.home, `copied-${Bun.randomUUIDv7()}`);
      const { uid, gid } = lstatSync(builder.home);
      const become = ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"];
      // What an ordinary user may not copy is missing, and the rest is there.
      Bun.spawnSync([...become, "sh", "-c", script, "sh", builder.state, copied]);
      const bough = (...words: string[]) => builder.bough(words, { BOUGH_HOME: copied });

      const checked = await bough("engine", "check");
      expect(checked.exitCode).toBe(problem === undefined ? 0 : 1);
      if (problem !== undefined)
        expect(checked.stdout + checked.stderr).toContain(`it was copied without ${problem}`);

      const built = await bough("build", "--tag", "app:1", ".");
      expect(built).toMatchObject({ exitCode: 0 });
      const ran = [...built.stderr.matchAll(/ op=\S+ RUN (rm -r|rm|echo \w+)/g)].map(
        ([, words]) => words ?? "",
      );
      expect(ran).toEqual(again);
      if (problem !== undefined)
        await bough(
          "images",
          "import",
          `oci-archive:${join(builder.home, "app.tar")}`,
          "--tag",
          "imported:1",
        );
      for (const image of ["app:1", "imported:1"])
        expect(
          await bough("run", "--use", image, "-D", "--", "sh", "-c", "ls -A /private; ls /token /last"),
        ).toMatchObject({
          stdout: "/last\n",
        });
      expect((await bough("build", "--tag", "app:1", ".")).stderr).not.toContain("spawned");
    },
  );
});
