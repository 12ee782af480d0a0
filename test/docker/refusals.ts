/** Dockerfiles that Docker refuses, with its errors. */
export interface Refusal {
  what: string;
  dockerfile: string;
  target?: string;
  /** The error of Debian's Docker (20.10). */
  docker: string;
  /** bough's error; undefined if the test does not check bough. */
  bough?: string;
}

const twoStages = (copy: string, before = "", after = "") =>
  `FROM busybox:1 AS a\n${before}\nFROM busybox:1\n${after}\n${copy}\n`;

export const refusals: readonly Refusal[] = [
  {
    what: "a target that is not a stage",
    dockerfile: "FROM busybox:1 AS build\nFROM busybox:1 AS final\n",
    target: "biuld",
    docker: "target stage biuld could not be found",
    bough: "--target biuld: there is no such stage",
  },
  {
    what: "a target by its number",
    dockerfile: "FROM busybox:1\nFROM busybox:1\n",
    target: "1",
    docker: "target stage 1 could not be found",
  },
  {
    what: "a copy from the stage itself",
    dockerfile: "FROM busybox:1 AS a\nCOPY --from=a /etc/passwd /\n",
    docker: "circular dependency detected on stage: a",
    bough: "circular dependency detected on stage: a",
  },
  {
    what: "a copy from the stage's own number",
    dockerfile: "FROM busybox:1\nCOPY --from=0 /etc/passwd /\n",
    docker: "circular dependency detected on stage: stage-0",
    bough: "--from=0: a stage can't copy from itself",
  },
  {
    what: "two stages that copy from each other",
    dockerfile:
      "FROM busybox:1 AS a\nCOPY --from=b /etc/passwd /y\nFROM busybox:1 AS b\nCOPY --from=a /etc/passwd /y\nFROM a\n",
    docker: "circular dependency detected on stage: a",
    bough: "--from=b: that stage is defined later, on line 3",
  },
  {
    what: "a copy from a later stage",
    dockerfile: "FROM busybox:1 AS a\nCOPY --from=b /x /y\nFROM busybox:1 AS b\nRUN echo > /x\nFROM a\n",
    docker: "no such file or directory",
    bough: "--from=b: that stage is defined later, on line 3",
  },
  {
    what: "a copy from a later stage's number",
    dockerfile: "FROM busybox:1 AS a\nCOPY --from=1 /x /y\nFROM busybox:1 AS b\nRUN echo > /x\nFROM a\n",
    docker: "no such file or directory",
    bough: "--from=1: that stage is defined later",
  },
  {
    what: "a copy from a name that a later stage has, too",
    dockerfile:
      "FROM busybox:1 AS a\nRUN echo > /x\nFROM busybox:1 AS b\nCOPY --from=a /x /y\nFROM busybox:1 AS A\nFROM b\n",
    docker: "no such file or directory",
    bough: "--from=a: the last stage of that name is defined later, on line 5",
  },
  {
    what: "a copy from a stage with the same name",
    dockerfile: "FROM busybox:1 AS a\nRUN echo > /x\nFROM busybox:1 AS a\nCOPY --from=a /x /y\n",
    docker: "circular dependency detected on stage: a",
    bough: "circular dependency detected on stage: a",
  },
  {
    what: "a number beyond the last stage",
    dockerfile: "FROM busybox:1\nCOPY --from=7 /x /\n",
    docker: "invalid stage index 7",
    bough: "--from=7: there is 1 stage, counted from 0",
  },
  {
    what: "a number below the first stage",
    dockerfile: "FROM busybox:1\nCOPY --from=-1 /x /\n",
    docker: "invalid stage index -1",
  },
  {
    what: "a number beyond the last stage, in a stage that nothing needs",
    dockerfile: "FROM busybox:1\nCOPY --from=7 /x /\nFROM busybox:1\n",
    docker: "invalid stage index 7",
    bough: "--from=7: there are 2 stages, counted from 0",
  },
  {
    what: "a variable in --from",
    dockerfile: "ARG S=a\nFROM busybox:1 AS a\nFROM busybox:1\nARG S\nCOPY --from=$S /etc/passwd /x\n",
    docker: 'failed to parse stage name "$S": invalid reference format',
    bough: "--from=$S: variables are not replaced there",
  },
  {
    what: "a base from an empty variable",
    dockerfile: "ARG X\nFROM $X\n",
    docker: "base name ($X) should not be blank",
    bough: "$X",
  },
  {
    what: "a base from the ARG of a stage",
    dockerfile: "FROM busybox:1 AS a\nARG B=a\nFROM $B\n",
    docker: "base name ($B) should not be blank",
    bough: "$B",
  },
  {
    what: "a stage's name that begins with a digit",
    dockerfile: "FROM busybox:1 AS 1st\n",
    docker: "invalid name for build stage",
    bough: "invalid name for build stage: ",
  },
  {
    what: "an unknown flag in a stage that nothing needs",
    dockerfile: "FROM busybox:1 AS a\nCOPY --fom=x / /\nFROM busybox:1\n",
    docker: "Unknown flag: fom",
    bough: "unknown flag: --fom (did you mean --from?)",
  },
  {
    what: "an unknown instruction in a stage that nothing needs",
    dockerfile: "FROM busybox:1 AS a\nCPOY x /\nFROM busybox:1\n",
    docker: "unknown instruction: CPOY",
    bough: "unknown instruction: CPOY (did you mean COPY?)",
  },
  {
    what: "FROM as a trigger",
    dockerfile: "FROM busybox:1 AS a\nONBUILD FROM busybox:1\nFROM a\n",
    docker: "FROM isn't allowed as an ONBUILD trigger",
    bough: "FROM isn't allowed as an ONBUILD trigger",
  },
  {
    what: "a trigger of a trigger",
    dockerfile: "FROM busybox:1 AS a\nONBUILD ONBUILD RUN true\nFROM a\n",
    docker: "Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed",
    bough: "Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed",
  },
  {
    what: "a missing source",
    dockerfile: twoStages("COPY --from=a /none /"),
    docker: "/none: no such file or directory",
  },
  {
    what: "a missing source and a glob without matches",
    dockerfile: twoStages("COPY --from=a /none* /really /x/"),
    docker: "/really: no such file or directory",
  },
  {
    what: "a glob in a missing directory",
    dockerfile: twoStages("COPY --from=a /none/* /x/"),
    docker: "/none: no such file or directory",
  },
  {
    what: "a source below a file",
    dockerfile: twoStages("COPY --from=a /etc/passwd/x /x"),
    docker: "/etc/passwd/x: not a directory",
  },
  {
    what: "a source that is a dangling link",
    dockerfile: twoStages("COPY --from=a /r/l /x", "RUN mkdir /r && ln -s nowhere /r/l"),
    docker: '"/r/nowhere" not found',
  },
  {
    what: "a glob that matches a dangling link",
    dockerfile: twoStages("COPY --from=a /r/* /x/", "RUN mkdir /r && ln -s nowhere /r/l"),
    docker: '"/r/nowhere" not found',
  },
  {
    what: "a source that is a link to itself",
    dockerfile: twoStages("COPY --from=a /a /x", "RUN ln -s b /a && ln -s a /b"),
    docker: "too many links",
  },
  {
    what: "a directory over a file",
    dockerfile: twoStages("COPY --from=a /d /d", "RUN mkdir /d", "RUN echo > /d"),
    docker: "cannot copy to non-directory: ",
  },
  {
    what: "a directory over a file in a subdirectory",
    dockerfile: twoStages("COPY --from=a /d /d", "RUN mkdir -p /d/e", "RUN mkdir /d && echo > /d/e"),
    docker: "cannot copy to non-directory: ",
  },
  {
    what: "a directory over a link to a directory, in a subdirectory",
    dockerfile: twoStages("COPY --from=a /d /d", "RUN mkdir -p /d/e", "RUN mkdir /d /r && ln -s /r /d/e"),
    docker: "cannot copy to non-directory: ",
  },
  {
    what: "a file over a directory in a subdirectory",
    dockerfile: twoStages("COPY --from=a /d /d", "RUN mkdir /d && echo > /d/e", "RUN mkdir -p /d/e"),
    docker: "cannot replace to directory ",
  },
  {
    what: "a source that an ignore rule excludes",
    dockerfile: "FROM busybox:1\nCOPY ignored /\n",
    docker: '"/ignored" not found',
    bough: "no such file or directory in the build context: ignored",
  },
  {
    what: "a link to the context's root that an ignore rule excludes",
    dockerfile: "FROM busybox:1\nCOPY ignored-too/up /x\n",
    docker: '"/ignored-too/up" not found',
    bough: "no such file or directory in the build context: ignored-too/up",
  },
  {
    what: "a pattern that matches a link to what an ignore rule excludes",
    dockerfile: "FROM busybox:1\nCOPY linked/* Dockerfile /x/\n",
    docker: '"/ignored-too" not found',
    bough: "no such file or directory in the build context: linked/to-ignored",
  },
  {
    what: "a directory over a file of an earlier COPY",
    dockerfile: "FROM busybox:1\nCOPY Dockerfile /d\nCOPY . /d\n",
    docker: "cannot copy to non-directory: ",
    bough: "/d in the image is not a directory",
  },
  {
    what: "a file over a directory of an earlier COPY",
    dockerfile: "FROM busybox:1\nCOPY . /d/Dockerfile/\nCOPY . /d\n",
    docker: "cannot replace to directory ",
    bough: "cannot put a file at /d/Dockerfile: there is a directory in the image",
  },
  {
    what: "a file below a file of an earlier COPY",
    dockerfile: "FROM busybox:1\nCOPY f /d\nCOPY f /d/f\n",
    docker: "/d: not a directory",
    bough: "Dockerfile:3: cannot put a file at /d/f: /d in the image is not a directory",
  },
  {
    what: "a stage's file below a file of an earlier COPY",
    dockerfile: twoStages("COPY --from=a /etc/passwd /d/f", "", "COPY f /d"),
    docker: "/d: not a directory",
    bough: "Dockerfile:5: mkdir /d: not a directory",
  },
  {
    what: "a WORKDIR below a file of an earlier COPY",
    dockerfile: "FROM busybox:1\nCOPY f /d\nWORKDIR /d/e\n",
    docker: "/d/e: not a directory",
    bough: "Dockerfile:3: cannot make the directory /d/e: /d in the image is not a directory",
  },
  {
    what: "a directory after a file, both to a name without a slash",
    dockerfile: "FROM busybox:1\nCOPY Dockerfile . /d\n",
    docker: "cannot copy to non-directory: ",
    bough: "cannot copy to non-directory: /d",
  },
  {
    what: "a directory over another source's file",
    dockerfile: "FROM busybox:1\nCOPY f d /x/\n",
    docker: "cannot copy to non-directory: ",
    bough: "cannot copy to non-directory: /x/f",
  },
  {
    what: "a directory over a file of another directory",
    dockerfile: "FROM busybox:1\nCOPY d2 d /x/\n",
    docker: "cannot copy to non-directory: ",
    bough: "cannot copy to non-directory: /x/f",
  },
  {
    what: "a file over a directory of another directory",
    dockerfile: "FROM busybox:1\nCOPY d d2 /x/\n",
    docker: "cannot replace to directory ",
    bough: "cannot replace to directory /x/f with file",
  },
  {
    what: "a pattern in a missing directory",
    dockerfile: "FROM busybox:1\nCOPY none/* Dockerfile /x/\n",
    docker: "/none: no such file or directory",
    bough: "no such file or directory in the build context: none/*",
  },
  {
    what: "a pattern in a directory that an ignore rule excludes",
    dockerfile: "FROM busybox:1\nCOPY ignored-too/* Dockerfile /x/\n",
    docker: "/ignored-too: no such file or directory",
    bough: "no such file or directory in the build context: ignored-too/*",
  },
  {
    what: "a pattern in a file",
    dockerfile: "FROM busybox:1\nCOPY f/* Dockerfile /x/\n",
    docker: "not a directory",
    bough: "no such file or directory in the build context: f/*",
  },
  {
    what: "a directory over a link of the image",
    dockerfile: "FROM busybox:1\nRUN mkdir -p /x /y && ln -s /y /x/f\nCOPY d /x/\n",
    docker: "cannot copy to non-directory: ",
    bough: "cannot copy to non-directory: /x/f",
  },
  {
    what: "a directory over a link of the image, in a subdirectory",
    dockerfile: "FROM busybox:1\nRUN mkdir -p /x/d /y && ln -s /y /x/d/f\nCOPY . /x\n",
    docker: "cannot copy to non-directory: ",
    bough: "cannot copy to non-directory: /x/d/f",
  },
  {
    what: "a destination below a file",
    dockerfile: twoStages("COPY --from=a /etc/passwd /etc/group/x"),
    docker: "/etc/group: not a directory",
  },
  {
    what: "an owner by name in an image without /etc/passwd",
    dockerfile: "FROM busybox:1 AS a\nFROM scratch\nCOPY --from=a --chown=nobody /etc/passwd /x\n",
    // A newer BuildKit makes it root's.
    docker: "invalid user index: -1",
  },
  {
    what: "a copy from scratch",
    dockerfile: "FROM busybox:1\nCOPY --from=scratch /etc/passwd /x\n",
    docker: "/etc/passwd: no such file or directory",
    bough: "not found (operation",
  },
  {
    what: "scratch in capital letters",
    dockerfile: "FROM SCRATCH\nCOPY Dockerfile /\n",
    docker: "repository name must be lowercase",
    bough: "SCRATCH is not a valid repository name: repository name must be lowercase",
  },
  {
    what: "an ENV that has no name once its variables are replaced",
    dockerfile: "FROM busybox:1\nENV $NAME=1\nRUN true\n",
    docker: "executor failed running [/bin/sh -c true]: exit code: 1",
    bough: "ENV names can not be blank (`$NAME`)",
  },
  {
    what: "an unknown USER",
    dockerfile: "FROM busybox:1\nUSER ghost\nRUN true\n",
    docker: "unable to find user ghost: no matching entries in passwd file",
    bough: "ghost",
  },
  {
    what: "a USER that is out of range",
    dockerfile: "FROM busybox:1\nUSER 2147483648\nRUN true\n",
    docker: "uids and gids must be in range 0-2147483647",
    bough: "2147483648 is out of range for a uid or gid",
  },
  {
    what: "an empty field of a mount",
    dockerfile: "FROM busybox:1\nRUN --mount=,target=/x true\n",
    docker: "invalid field '' must be a key=value pair",
    bough: "invalid field '' must be a key=value pair",
  },
  {
    what: "a stage that fails",
    dockerfile: "FROM busybox:1 AS a\nRUN exit 7\nFROM busybox:1\nCOPY --from=a /etc /etc\n",
    docker: "[/bin/sh -c exit 7]: exit code: 7",
    bough: "the command failed with exit code 7",
  },
];
