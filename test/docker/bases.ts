import { join } from "node:path";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

/** Makes the base images of the cases. Returns their sources in skopeo's terms, by their names in a FROM. */
export async function makeBases(directory: string): Promise<Record<string, string>> {
  return {
    "busybox:1": await makeBusyboxLayout(join(directory, "busybox")),
    "configured:1": await makeBusyboxLayout(join(directory, "configured"), {
      environment: ["PATH=/opt/bin:/bin", "GIVEN=by the image"],
      workingDirectory: "/srv/app",
      configuration: { User: "daemon" },
      author: "theirs",
      prepare: (root) => writeFiles(root, { "srv/app/theirs": "x\n" }),
    }),
    "onbuild:1": await makeBusyboxLayout(join(directory, "onbuild"), {
      configuration: {
        OnBuild: ["ARG TRIGGER=none", 'RUN echo "$TRIGGER" > /triggered', "COPY f /f", "WORKDIR /by-trigger"],
      },
    }),
    "tools:latest": await makeBusyboxLayout(join(directory, "tools"), {
      prepare: (root) =>
        writeFiles(root, {
          "opt/tools/bin/tool": { text: "#!/bin/sh\necho tool\n", mode: 0o755 },
          "opt/tools/private": { mode: 0o700 },
          "opt/tools/private/key": { text: "key\n", mode: 0o600 },
          "opt/tools/link": { link: "bin/tool" },
          "etc/tools.conf": "conf\n",
        }),
    }),
  };
}
