// SPDX-License-Identifier: Apache-2.0
#include "platform/process.h"

#include <windows.h>
// After windows.h.
#include <shellapi.h>
#include <tlhelp32.h>

#include <algorithm>
#include <cstdlib>
#include <cwchar>
#include <thread>

#include "platform/windows/error_text.h"
#include "platform/windows/handle.h"
#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

using Clock = std::chrono::steady_clock;
using windows::Handle;

/// The environment variable with the number of the handle of a MessageChannel, in the program that has it.
constexpr const wchar_t* message_variable = L"TENON_MESSAGE_PIPE";
/// The most that one call reads: endless output of one process must not block the others.
constexpr std::size_t max_read = 1 << 20;
constexpr std::chrono::seconds patience{10};
/// The exit code of a process that was killed.
constexpr UINT killed_code = 1;

std::string last_error() {
  return windows::error_text(GetLastError());
}

/// Connected handles. `theirs` is the one that the child inherits.
struct Connection {
  enum class Kind { from_child, to_child };
  explicit Connection(Kind kind) {
    HANDLE reader = nullptr, writer = nullptr;
    if (!CreatePipe(&reader, &writer, nullptr, 1 << 16)) throw StartError("no pipe: " + last_error(), true);
    ours = Handle(kind == Kind::from_child ? reader : writer);
    theirs = Handle(kind == Kind::from_child ? writer : reader);
    SetHandleInformation(theirs.get(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
  }
  Handle ours, theirs;
};

/// A file that is empty and swallows what is written, for a child to inherit.
Handle open_nothing() {
  SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
  return Handle(
      CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, nullptr));
}

/// A standard stream of this process for a child to inherit; nothing is read from or written to a stream that this process lacks.
Handle inherited_stream(DWORD which) {
  const HANDLE own = GetStdHandle(which), process = GetCurrentProcess();
  HANDLE copy = nullptr;
  if (own == nullptr || own == INVALID_HANDLE_VALUE || !DuplicateHandle(process, own, process, &copy, 0, TRUE, DUPLICATE_SAME_ACCESS)) {
    return open_nothing();
  }
  return Handle(copy);
}

/// Appends an argument so that CommandLineToArgvW and the C runtimes read it as it is: backslashes are doubled before a quotation mark
/// only.
void append_quoted(std::wstring& line, const std::wstring& argument) {
  if (!line.empty()) line += L' ';
  if (!argument.empty() && argument.find_first_of(L" \t\n\v\"") == std::wstring::npos) {
    line += argument;
    return;
  }
  line += L'"';
  std::size_t backslashes = 0;
  for (const wchar_t c : argument) {
    if (c == L'"') line.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    line += c;
  }
  line.append(backslashes, L'\\');
  line += L'"';
}

bool is_file(const std::filesystem::path& path) {
  const DWORD attributes = GetFileAttributesW(path.c_str());
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
}

/// The file of a program. Its extension may be left out. A name without a folder is searched for in PATH, never in the working directory.
std::filesystem::path file_of_program(const std::filesystem::path& program) {
  const auto with_extension = [](std::filesystem::path path) {
    if (!is_file(path)) path += L".exe";
    return path;
  };
  if (program.has_parent_path()) return with_extension(program);
  std::wstring list(GetEnvironmentVariableW(L"PATH", nullptr, 0), L'\0');
  list.resize(GetEnvironmentVariableW(L"PATH", list.data(), static_cast<DWORD>(list.size())));
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(L';', begin), list.size());
    if (end > begin) {
      const std::filesystem::path file = with_extension(std::filesystem::path(list.substr(begin, end - begin)) / program);
      if (is_file(file)) return file;
    }
    begin = end + 1;
  }
  return with_extension(program);
}

constexpr int max_attempts = 3;  // to create a process

/// The environment of this process with the additions, as CreateProcessW takes it.
std::wstring environment_with(const std::vector<std::pair<std::string, std::string>>& additions) {
  std::vector<std::wstring> all;
  wchar_t* const own = GetEnvironmentStringsW();
  for (const wchar_t* line = own; line != nullptr && *line != L'\0'; line += std::wcslen(line) + 1) {
    const auto replaces = [&](const auto& addition) {
      const std::wstring name = windows::wide(addition.first) + L'=';
      return _wcsnicmp(line, name.c_str(), name.size()) == 0;
    };
    if (std::none_of(additions.begin(), additions.end(), replaces)) all.emplace_back(line);
  }
  FreeEnvironmentStringsW(own);
  for (const auto& [name, value] : additions) all.push_back(windows::wide(name) + L'=' + windows::wide(value));
  // Windows keeps the names sorted.
  std::sort(all.begin(), all.end(), [](const std::wstring& a, const std::wstring& b) { return _wcsicmp(a.c_str(), b.c_str()) < 0; });
  std::wstring block;
  for (const std::wstring& line : all) block.append(line.c_str(), line.size() + 1);
  block += L'\0';
  return block;
}

/// What a new process inherits: its standard streams, and nothing else but `also`.
struct Streams {
  Handle input, output, error;
  HANDLE also = nullptr;
};

/// A process and the job that it and its descendants belong to, which ends with the last handle to it: when this process ends, however it
/// does.
struct Started {
  Handle process, job;
};

Handle make_job() {
  Handle job(CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits, sizeof limits);
  return job;
}

/// The attributes of a new process.
class AttributeList {
 public:
  explicit AttributeList(std::vector<HANDLE>& inherited) {
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &size);
    bytes_.resize(size);
    if (!InitializeProcThreadAttributeList(get(), 1, 0, &size)) throw StartError(last_error(), false);
    if (!UpdateProcThreadAttribute(get(), 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, inherited.data(), inherited.size() * sizeof(HANDLE),
                                   nullptr, nullptr)) {
      const std::string reason = last_error();
      DeleteProcThreadAttributeList(get());
      throw StartError(reason, false);
    }
  }
  ~AttributeList() { DeleteProcThreadAttributeList(get()); }
  AttributeList(const AttributeList&) = delete;
  AttributeList& operator=(const AttributeList&) = delete;
  LPPROC_THREAD_ATTRIBUTE_LIST get() { return reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(bytes_.data()); }

 private:
  std::vector<char> bytes_;
};

Started start(const std::filesystem::path& program, std::span<const std::string> arguments,
              const std::vector<std::pair<std::string, std::string>>& environment, const Streams& streams, DWORD flags) {
  const std::filesystem::path file = file_of_program(program);
  std::wstring command;
  append_quoted(command, file.native());
  for (const std::string& argument : arguments) append_quoted(command, windows::wide(argument));
  std::wstring variables = environment_with(environment);
  std::vector<HANDLE> inherited{streams.input.get(), streams.output.get(), streams.error.get()};
  if (streams.also != nullptr) inherited.push_back(streams.also);
  AttributeList attributes(inherited);
  STARTUPINFOEXW startup{};
  startup.StartupInfo.cb = sizeof startup;
  startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  startup.StartupInfo.hStdInput = streams.input.get();
  startup.StartupInfo.hStdOutput = streams.output.get();
  startup.StartupInfo.hStdError = streams.error.get();
  startup.lpAttributeList = attributes.get();
  Started started;
  started.job = make_job();
  PROCESS_INFORMATION made{};
  // It starts when it is part of the job, so that no descendant escapes.
  const auto create = [&] {
    return CreateProcessW(file.c_str(), command.data(), nullptr, nullptr, TRUE,
                          flags | EXTENDED_STARTUPINFO_PRESENT | CREATE_UNICODE_ENVIRONMENT | CREATE_SUSPENDED, variables.data(), nullptr,
                          &startup.StartupInfo, &made) != FALSE;
  };
  // Wine 8 reports an internal error now and then on a busy machine, and succeeds the next time.
  for (int attempt = 1; !create(); ++attempt) {
    if (GetLastError() != ERROR_INTERNAL_ERROR || attempt == max_attempts) throw StartError(last_error(), false);
    Sleep(100);
  }
  started.process = Handle(made.hProcess);
  const Handle thread(made.hThread);
  if (!AssignProcessToJobObject(started.job.get(), made.hProcess)) started.job.close();  // then only the process itself can be killed
  ResumeThread(made.hThread);
  return started;
}

/// Whether there is something to read, its end included.
bool is_readable(const Handle& pipe) {
  DWORD available = 0;
  return pipe.is_open() && (!PeekNamedPipe(pipe.get(), nullptr, 0, nullptr, &available, nullptr) || available > 0);
}

/// Reads what is available. Closes the handle at its end.
std::string read_available(Handle& pipe) {
  std::string text;
  char bytes[4096];
  while (pipe.is_open() && text.size() < max_read) {
    DWORD available = 0, n = 0;
    const bool open = PeekNamedPipe(pipe.get(), nullptr, 0, nullptr, &available, nullptr) != 0;
    if (open && available == 0) break;
    if (!open || !ReadFile(pipe.get(), bytes, std::min<DWORD>(available, sizeof bytes), &n, nullptr)) {
      pipe.close();
      break;
    }
    text.append(bytes, n);
  }
  return text;
}

/// What Windows calls the exceptions that end processes; nullptr for an exit code.
const char* name_of_exception(DWORD code) {
  switch (code) {
    case STATUS_ACCESS_VIOLATION:
      return "access violation";
    case STATUS_IN_PAGE_ERROR:
      return "a page cannot be read";
    case STATUS_ILLEGAL_INSTRUCTION:
      return "illegal instruction";
    case STATUS_PRIVILEGED_INSTRUCTION:
      return "privileged instruction";
    case STATUS_INTEGER_DIVIDE_BY_ZERO:
      return "integer division by zero";
    case STATUS_FLOAT_DIVIDE_BY_ZERO:
      return "floating-point division by zero";
    case STATUS_STACK_OVERFLOW:
      return "stack overflow";
    case STATUS_BREAKPOINT:
      return "breakpoint";
    case STATUS_CONTROL_C_EXIT:
      return "Ctrl-C";
    case 0xC0000135:
      return "a DLL that it needs was not found";
    case 0xC0000139:
      return "a DLL that it needs lacks a function";
    case 0xC0000142:
      return "a DLL that it needs failed to initialise";
    case 0xC0000374:
      return "heap corruption";
    case 0xC0000409:
      return "abort, or a stack buffer overrun";
    case 0xE06D7363:
    case 0x20474343:
      return "a C++ exception that nothing caught";
    default:
      return (code >> 30) == 3 ? "an exception" : nullptr;  // the severity "error"
  }
}

ProcessEnd end_of(DWORD code) {
  ProcessEnd end;
  if (const char* const name = name_of_exception(code)) {
    char number[32];
    std::snprintf(number, sizeof number, "exception 0x%08lx", code);
    end.kind = ProcessEnd::Kind::crashed;
    end.cause = number;
    end.name = name;
  } else {
    end.kind = ProcessEnd::Kind::exited;
    end.exit_code = static_cast<int>(code);
  }
  return end;
}

}  // namespace

struct Process::State {
  Handle process, job;
  bool own_group = false;
  Handle input, output, messages;
  bool over = false;
  ProcessEnd end;
  std::optional<Clock::time_point> killed;
};

Process::Process(const ProcessOptions& options) : state_(std::make_unique<State>()) {
  using Output = ProcessOptions::Output;
  std::optional<Connection> input, output, messages;
  if (options.input) input.emplace(Connection::Kind::to_child);
  if (options.output != Output::inherited) output.emplace(Connection::Kind::from_child);
  if (options.messages) messages.emplace(Connection::Kind::from_child);

  const auto copy_of = [](const Handle& handle) {
    HANDLE copy = nullptr;
    DuplicateHandle(GetCurrentProcess(), handle.get(), GetCurrentProcess(), &copy, 0, TRUE, DUPLICATE_SAME_ACCESS);
    return Handle(copy);
  };
  Streams streams;
  streams.input = input ? std::move(input->theirs) : open_nothing();
  streams.error = options.output == Output::all ? copy_of(output->theirs) : inherited_stream(STD_ERROR_HANDLE);
  streams.output = output ? std::move(output->theirs) : inherited_stream(STD_OUTPUT_HANDLE);
  std::vector<std::pair<std::string, std::string>> environment = options.environment;
  if (messages) {
    streams.also = messages->theirs.get();
    environment.emplace_back(windows::utf8(message_variable), std::to_string(reinterpret_cast<std::uintptr_t>(streams.also)));
  }
  // A program that writes to pipes only needs no console window, which a parent without a console would make visible.
  const DWORD flags = (options.output == Output::all ? CREATE_NO_WINDOW : 0) | (options.own_group ? CREATE_NEW_PROCESS_GROUP : 0);
  Started started = start(options.program, options.arguments, environment, streams, flags);
  state_->process = std::move(started.process);
  state_->job = std::move(started.job);
  state_->own_group = options.own_group;
  if (input) state_->input = std::move(input->ours);
  if (output) state_->output = std::move(output->ours);
  if (messages) state_->messages = std::move(messages->ours);
}

Process::~Process() {
  if (!ended() && !state_->killed) kill();
  if (ended()) return;
  const auto left = patience - (Clock::now() - *state_->killed);
  const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  if (left_ms > 0) WaitForSingleObject(state_->process.get(), static_cast<DWORD>(left_ms));
}

std::string Process::read_output() {
  return read_available(state_->output);
}

std::string Process::read_messages() {
  return read_available(state_->messages);
}

void Process::write(std::string_view bytes) {
  while (state_->input.is_open() && !bytes.empty()) {
    DWORD n = 0;
    if (!WriteFile(state_->input.get(), bytes.data(), static_cast<DWORD>(std::min(bytes.size(), max_read)), &n, nullptr)) return;
    bytes.remove_prefix(n);
  }
}

void Process::close_input() {
  state_->input.close();
}

bool Process::ended() {
  State& state = *state_;
  if (state.over) return true;
  if (WaitForSingleObject(state.process.get(), 0) != WAIT_OBJECT_0) return false;
  state.over = true;
  DWORD code = 0;
  if (GetExitCodeProcess(state.process.get(), &code)) state.end = end_of(code);
  if (state.own_group && state.job.is_open()) TerminateJobObject(state.job.get(), killed_code);
  return true;
}

void Process::kill() {
  if (state_->over) return;
  if (state_->job.is_open()) {
    TerminateJobObject(state_->job.get(), killed_code);
  } else {
    TerminateProcess(state_->process.get(), killed_code);
  }
  state_->killed = Clock::now();
}

const ProcessEnd& Process::end() const {
  return state_->end;
}

void wait_for_any(std::span<Process* const> processes, std::chrono::milliseconds timeout) {
  // Windows cannot wait for an anonymous pipe, so those are asked at this interval.
  constexpr DWORD tick_ms = 2;
  const auto deadline = Clock::now() + timeout;
  std::vector<HANDLE> handles;
  for (Process* const process : processes) {
    if (handles.size() < MAXIMUM_WAIT_OBJECTS) handles.push_back(process->state_->process.get());
  }
  for (;;) {
    for (Process* const process : processes) {
      if (is_readable(process->state_->messages) || is_readable(process->state_->output)) return;
    }
    if (Clock::now() >= deadline) return;
    if (handles.empty()) {
      Sleep(tick_ms);
    } else if (WaitForMultipleObjects(static_cast<DWORD>(handles.size()), handles.data(), FALSE, tick_ms) <
               WAIT_OBJECT_0 + handles.size()) {
      return;
    }
  }
}

std::string continue_as(const std::filesystem::path& program, std::span<const std::string> arguments) {
  // Ctrl-C reaches both processes, and the other one decides what it means. A handler is not inherited, ignoring it would be.
  SetConsoleCtrlHandler([](DWORD event) -> BOOL { return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT; }, TRUE);
  try {
    Streams streams;
    streams.input = inherited_stream(STD_INPUT_HANDLE);
    streams.output = inherited_stream(STD_OUTPUT_HANDLE);
    streams.error = inherited_stream(STD_ERROR_HANDLE);
    const Started started = start(program, arguments, {}, streams, 0);
    WaitForSingleObject(started.process.get(), INFINITE);
    DWORD code = 1;
    GetExitCodeProcess(started.process.get(), &code);
    std::exit(static_cast<int>(code));
  } catch (const StartError& error) {
    return error.what();
  }
}

std::optional<MessageChannel> MessageChannel::to_parent() {
  const wchar_t* const number = _wgetenv(message_variable);
  if (number == nullptr) return std::nullopt;
  const auto pipe = static_cast<std::intptr_t>(std::wcstoull(number, nullptr, 10));
  // Neither this process nor programs that it starts find it again.
  _wputenv_s(message_variable, L"");
  const HANDLE handle = reinterpret_cast<HANDLE>(pipe);
  if (GetFileType(handle) != FILE_TYPE_PIPE || !SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0)) return std::nullopt;
  SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
  return MessageChannel(pipe);
}

bool MessageChannel::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    DWORD n = 0;
    if (!WriteFile(reinterpret_cast<HANDLE>(handle_), bytes.data(), static_cast<DWORD>(std::min(bytes.size(), max_read)), &n, nullptr)) {
      return false;
    }
    bytes.remove_prefix(n);
  }
  return true;
}

void exit_now(int code) {
  TerminateProcess(GetCurrentProcess(), static_cast<UINT>(code));
  std::abort();  // not reached
}

std::vector<std::string> command_line(int, const char* const*) {
  int count = 0;
  wchar_t** const words = CommandLineToArgvW(GetCommandLineW(), &count);
  std::vector<std::string> line;
  for (int i = 0; i < count; ++i) line.push_back(windows::utf8(words[i]));
  LocalFree(words);
  return line;
}

std::optional<int> thread_count() {
  const Handle snapshot(CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0));
  if (!snapshot.is_open()) return std::nullopt;
  THREADENTRY32 entry{};
  entry.dwSize = sizeof entry;
  int count = 0;
  for (BOOL more = Thread32First(snapshot.get(), &entry); more; more = Thread32Next(snapshot.get(), &entry)) {
    if (entry.th32OwnerProcessID == GetCurrentProcessId()) ++count;
  }
  return count;
}

}  // namespace tenon::platform
