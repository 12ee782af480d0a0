import type { CommandTable } from "../command-line/command.ts";

/** All of bough's commands, in the order in which help lists them. */
export const commands: CommandTable = {
  build: {
    summary: "Build an image from a Dockerfile",
    load: async () => (await import("../builds/build.ts")).build,
  },
  bake: {
    summary: "Build the targets of bake files and compose files",
    load: async () => (await import("../bake/bake.ts")).bake,
  },
  history: {
    summary: "Show past builds: what took long, what was not cached and why",
    fallback: "ls",
    commands: {
      ls: {
        summary: "List the builds (what `bough history` alone does)",
        load: async () => (await import("../history/list.ts")).ls,
      },
      show: { summary: "Show a build's steps", load: async () => (await import("../history/show.ts")).show },
      logs: {
        summary: "Print what a build's commands have printed",
        load: async () => (await import("../history/logs.ts")).logs,
      },
      diff: { summary: "Compare two builds", load: async () => (await import("../history/diff.ts")).diff },
      report: {
        summary: "Write a page about a build",
        load: async () => (await import("../history/report.ts")).report,
      },
      rm: { summary: "Remove builds", load: async () => (await import("../history/remove.ts")).rm },
    },
  },
  use: {
    summary: "Set, or show, the image that the session works in",
    load: async () => (await import("../sessions/use.ts")).use,
  },
  cd: {
    summary: "Set, or show, the directory in which the session's commands begin",
    load: async () => (await import("../sessions/cd.ts")).cd,
  },
  env: {
    summary: "Set, or list, variables of the session's commands",
    load: async () => (await import("../sessions/cd.ts")).env,
  },
  run: {
    summary: "Run a command in an image",
    load: async () => (await import("../run/run.ts")).run,
  },
  shell: {
    summary: "Open a shell in an image, on this terminal",
    load: async () => (await import("../run/shell.ts")).shell,
  },
  images: {
    summary: "List, import, export and remove images",
    fallback: "list",
    fallbackTakesName: true,
    commands: {
      list: {
        summary: "List the images (what `bough images` alone does)",
        load: async () => (await import("../images/list.ts")).list,
      },
      import: {
        summary: "Import images from a registry",
        load: async () => (await import("../images/import.ts")).importCommand,
      },
      export: {
        summary: "Write an image to an archive, a directory or a registry",
        load: async () => (await import("../images/export.ts")).exportCommand,
      },
      remove: {
        summary: "Remove images",
        load: async () => (await import("../images/remove.ts")).remove,
      },
    },
  },
  rmi: {
    summary: "Remove images (`bough images remove`)",
    load: async () => (await import("../images/remove.ts")).remove,
  },
  inspect: {
    summary: "Show an image's configuration, and what makes its layers large",
    load: async () => (await import("../images/inspect.ts")).inspect,
  },
  layers: {
    summary: "Find what images have in several layers, and how they would share it",
    load: async () => (await import("../layers/layers.ts")).layers,
  },
  push: {
    summary: "Send an image to a registry",
    load: async () => (await import("../images/export.ts")).push,
  },
  index: {
    summary: "Join images of a registry to one for several platforms",
    commands: {
      create: {
        summary: "Write an index that names an image for each platform",
        load: async () => (await import("../indexes/index-commands.ts")).create,
      },
      inspect: {
        summary: "Show which platforms an image of a registry is for",
        load: async () => (await import("../indexes/index-commands.ts")).inspect,
      },
    },
  },
  verify: {
    summary: "Check who has signed an image of a registry",
    load: async () => (await import("../verify/verify.ts")).verify,
  },
  tag: { summary: "Tag an image", load: async () => (await import("../images/tag.ts")).tag },
  untag: {
    summary: "Remove tags from an image",
    load: async () => (await import("../images/tag.ts")).untag,
  },
  session: {
    summary: "Show, branch and roll back what builds and `run` have made",
    commands: {
      list: { summary: "List the sessions", load: async () => (await import("../sessions/list.ts")).list },
      show: {
        summary: "Show a session's history and branches",
        load: async () => (await import("../sessions/show.ts")).show,
      },
      branch: {
        summary: "List, make or delete branches",
        load: async () => (await import("../sessions/branch.ts")).branch,
      },
      checkout: {
        summary: "Switch to another branch",
        load: async () => (await import("../sessions/branch.ts")).checkout,
      },
      rollback: {
        summary: "Go back to an earlier image",
        load: async () => (await import("../sessions/show.ts")).rollback,
      },
      delete: {
        summary: "Delete sessions with their history",
        load: async () => (await import("../sessions/list.ts")).deleteCommand,
      },
    },
  },
  cache: {
    summary: "Manage the layers that machines share",
    commands: {
      list: { summary: "List the scopes", load: async () => (await import("../cache/scopes.ts")).list },
      show: {
        summary: "Show the layers of a scope",
        load: async () => (await import("../cache/scopes.ts")).show,
      },
      remove: { summary: "Remove a scope", load: async () => (await import("../cache/scopes.ts")).remove },
    },
  },
  ls: { summary: "List files of an image", load: async () => (await import("../images/files.ts")).ls },
  cat: { summary: "Print files of an image", load: async () => (await import("../images/files.ts")).cat },
  cp: { summary: "Copy files out of an image", load: async () => (await import("../images/cp.ts")).cp },
  ps: { summary: "List operations", load: async () => (await import("../operations/ps.ts")).ps },
  show: { summary: "Show an operation", load: async () => (await import("../operations/show.ts")).show },
  logs: {
    summary: "Print an operation's output",
    load: async () => (await import("../operations/show.ts")).logs,
  },
  kill: { summary: "Cancel operations", load: async () => (await import("../operations/wait.ts")).kill },
  wait: {
    summary: "Wait until operations have ended",
    load: async () => (await import("../operations/wait.ts")).wait,
  },
  auth: {
    summary: "Manage profiles: addresses of services, and their tokens",
    fallback: "save",
    commands: {
      save: {
        summary: "Save a profile (what `bough auth` alone does)",
        load: async () => (await import("../auth/auth.ts")).save,
      },
      list: {
        summary: "List the profiles, and check that each service accepts its token",
        load: async () => (await import("../auth/profiles.ts")).list,
      },
      switch: {
        summary: "Make another profile the active one",
        load: async () => (await import("../auth/profiles.ts")).switchCommand,
      },
      remove: {
        summary: "Remove a profile",
        load: async () => (await import("../auth/profiles.ts")).remove,
      },
    },
  },
  engine: {
    summary: "Maintain the embedded engine",
    commands: {
      check: {
        summary: "Read everything that the engine stores, and report damage",
        load: async () => (await import("../engine/check.ts")).check,
      },
      df: {
        summary: "Show what the engine stores, and what uses it",
        load: async () => (await import("../engine/df.ts")).df,
      },
      prune: {
        summary: "Remove what is no longer needed",
        load: async () => (await import("../engine/prune.ts")).prune,
      },
    },
  },
  serve: {
    summary: "Serve the embedded engine over HTTP",
    load: async () => (await import("../engine/serve.ts")).serve,
  },
  doctor: {
    summary: "Check the service, the credentials, and what the engine needs",
    load: async () => (await import("../doctor/doctor.ts")).doctor,
  },
  completion: {
    summary: "Print the completion script for a shell",
    load: async () => (await import("../completion/completion.ts")).completion,
  },
  licenses: {
    summary: "Print the licences of everything that is compiled in",
    load: async () => (await import("../about/licenses.ts")).licenses,
  },
  "release-key": {
    summary: "Print the key that releases are signed with",
    load: async () => (await import("../about/licenses.ts")).releaseKeyCommand,
  },
  agent: {
    summary: "Print the manual for coding agents",
    load: async () => (await import("../about/agent-manual.ts")).agent,
  },
  skill: {
    summary: "Install the manual's short form for a coding agent",
    commands: {
      install: {
        summary: "Install the skill where an agent looks for skills",
        load: async () => (await import("../skill/commands.ts")).install,
      },
      list: {
        summary: "List the agents, and which have the skill",
        load: async () => (await import("../skill/commands.ts")).list,
      },
      upgrade: {
        summary: "Replace installed skills by those of this version",
        load: async () => (await import("../skill/commands.ts")).upgrade,
      },
      remove: {
        summary: "Remove installed skills",
        load: async () => (await import("../skill/commands.ts")).remove,
      },
    },
  },
  plugin: {
    summary: "Let docker's command line build with bough",
    fallback: "status",
    commands: {
      install: {
        summary: "Make bough docker's builder, the plug-in docker-buildx",
        load: async () => (await import("../about/plugin.ts")).install,
      },
      status: {
        summary: "Show whether bough is docker's builder (what `bough plugin` alone does)",
        load: async () => (await import("../about/plugin.ts")).status,
      },
      remove: {
        summary: "Remove the plug-in, so that docker uses its own builder again",
        load: async () => (await import("../about/plugin.ts")).remove,
      },
    },
  },
  mcp: {
    summary: "Serve bough's tools to a coding agent (Model Context Protocol)",
    load: async () => (await import("../mcp/mcp.ts")).mcp,
  },
};
